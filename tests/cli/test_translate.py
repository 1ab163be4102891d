"""`transduce translate`: wrong combinations of options, each refused in one sentence before a model is loaded."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import SOURCES, TARGETS, Command, write_lines

from transduce.errors import TransduceError


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a.txt", "--text", "a dog"], "Give either --text or files, not both."),
        (["absent.txt"], "absent.txt does not exist."),
        (["a.txt", "--overwrite"], "--overwrite, --resume, --leave-below, --from, --source-column"),
        (["a.txt", "--from", "en"], "--overwrite, --resume, --leave-below, --from, --source-column"),
        (["a.txt", "--output", "a.txt"], "a.txt exists already. Add --force to overwrite it"),
        (["a.po", "--json"], "--json, --alternatives and --alignments are for lines of text"),
        (["a.po", "--alignments"], "--json, --alternatives and --alignments are for lines of text"),
        (["--text", "x", "--alignments", "--alternatives", "2"], "--alignments aligns the best translation alone"),
        (["a.po", "a.txt"], "Lines of text and documents cannot be mixed in one command."),
        (["a.po", "--resume"], "Name it with --output."),
        (["a.txt", "--format", "odt"], "--format odt is not known."),
    ],
)
def test_a_wrong_combination_is_refused_before_a_model_is_loaded(
    transduce: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "a.po"):
        write_lines(tmp_path / name, ["a dog"])
    result = transduce("translate", "no-such-model", *arguments)
    assert isinstance(result.exception, TransduceError)
    assert sentence in str(result.exception)


def test_options_of_sampling_need_sample(transduce: Command, small_model: Path) -> None:
    result = transduce("translate", small_model, "--text", "it rains", "--temperature", "0.5", "--threads", "1")
    assert isinstance(result.exception, TransduceError)
    assert "Set sample = true" in str(result.exception)


def test_each_line_of_a_file_becomes_a_line_of_the_output(
    transduce: Command, small_model: Path, tmp_path: Path
) -> None:
    text, output = write_lines(tmp_path / "text.en", SOURCES), tmp_path / "text.de"
    assert transduce("translate", small_model, text, "--output", output, "--threads", "1").exit_code == 0
    assert output.read_text(encoding="utf-8").splitlines() == TARGETS


def test_alignments_are_pairs_of_word_numbers(transduce: Command, small_model: Path) -> None:
    arguments = ("translate", small_model, "--text", "it rains", "--alignments", "--threads", "1")
    line = transduce(*arguments).stdout.rstrip("\n")
    text, pairs = line.split(" ||| ") if " ||| " in line else (line.removesuffix(" |||"), "")
    read = [tuple(map(int, pair.split("-"))) for pair in pairs.split()]
    assert [target for _, target in read] == list(range(len(text.split())))
    assert all(source in (0, 1) for source, _ in read)
    found = json.loads(transduce(*arguments, "--json").stdout)
    assert found["alignments"] == [list(pair) for pair in read]


def test_more_alternatives_than_the_model_has_beams_widen_the_beam(transduce: Command, small_model: Path) -> None:
    found = transduce("translate", small_model, "--text", "it rains", "--alternatives", "6", "--json", "--threads", "1")
    alternatives = json.loads(found.stdout)["alternatives"]
    assert len(alternatives) == 6
    assert alternatives[0]["text"] == "es regnet"
