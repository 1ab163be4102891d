"""`transduce train`: what is refused before anything is trained, and the experiment file that it writes."""

import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Command

from transduce.errors import ConfigError, TransduceError


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--train", "a.tsv"], "Name the run directory: --output runs/NAME."),
        (["--train", "a.tsv", "--output", "run", "--set", "training.stepz=3"], "training.stepz"),
        (["--train", "a.tsv", "--output", "run", "--preset", "huge"], "huge"),
        (["absent.toml", "--output", "run"], "absent.toml"),
        (["--output", "run"], "train"),
        (["a.tsv", "--output", "run"], "not an experiment file (TOML). If it is training text, write --train a.tsv"),
        (["--train", "a.en", "a.tsv", "--output", "run"], "one name with a comma, such as --train a.en,a.de"),
        (
            ["--train", "a.tsv", "--output", "run", "--set", "training.time=abc"],
            "'abc': not a duration such as \"90s\"",
        ),
    ],
)
def test_a_wrong_command_is_refused_in_one_sentence(
    transduce: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tsv").write_text("a dog\tein Hund\n", encoding="utf-8")
    result = transduce("train", *arguments)
    assert isinstance(result.exception, TransduceError)
    assert sentence in str(result.exception)
    assert not (tmp_path / "run" / "model").exists()


def test_an_experiment_file_holds_what_was_given_and_is_never_overwritten(transduce: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    options = ("--train", "a.tsv", "--from", "en", "--threads", "2", "--set", "training.steps=7", "--preset", "tiny")
    assert transduce("train", *options, "--write-experiment", file).exit_code == 0
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    assert (written["data"]["train"], written["data"]["source_language"]) == (["a.tsv"], "en")
    assert (written["training"]["threads"], written["training"]["steps"]) == (2, 7)
    again = transduce("train", *options, "--write-experiment", file)
    assert isinstance(again.exception, ConfigError)
    assert "mine.toml exists already" in str(again.exception)
