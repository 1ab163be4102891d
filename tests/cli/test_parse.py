"""`transduce train` on trees, and `parse`, `evaluate` and `attention` with the model that it makes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from transduce.errors import DataError, ModelError, TransduceError
from transduce.model_directory import load_model
from transduce.text.trees import Tree, read_trees

pytestmark = pytest.mark.slow

Command = Callable[..., Result]

NOUNS, VERBS = ("cat", "dog", "bird"), ("sits", "runs", "sings")
TREES = [
    f"(ROOT (S (NP-SBJ (DT {article}) (NN {noun})) (VP (VBZ {verb}) (ADVP (RB {adverb}))) (. .)))"
    for article in ("the", "a")
    for noun in NOUNS
    for verb in VERBS
    for adverb in ("here", "now")
]


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("treebank") / "few.ptb"
    path.write_text("\n".join(TREES), encoding="utf-8")
    return path


TRANSFORMER: dict[str, object] = {"layers": 1, "d_ff": 32, "heads": 2}
RNNSEARCH: dict[str, object] = {
    "kind": "rnnsearch",
    "embedding_width": 32,
    "alignment_width": 32,
    "output_width": 32,
    "tied": "none",
}


@pytest.fixture(scope="module")
def model(treebank: Path) -> Path:
    return trained(treebank, "parsing", TRANSFORMER)


def trained(treebank: Path, preset: str, network: dict[str, object]) -> Path:
    from typer.testing import CliRunner

    from transduce.cli.application import app

    run = treebank.parent / preset
    sizes = network | {"d_model": 32, "dropout": 0.0, "vocabulary_size": 330}
    steps = {
        "batch_tokens": 1024,
        "schedule": "cosine",
        "optimizer": "muon",
        "decay_steps": 60,
        "warmup_steps": 5,
        "peak": 0.02,
        "validate_every": 60,
    }
    more = {"checkpoint_every": 60, "tensorboard": "false", "bpe_dropout": 0.0, "threads": 1}
    settings = [f"model.{key}={value}" for key, value in sizes.items()]
    settings += [f"training.{key}={value}" for key, value in (steps | more).items()]
    arguments = [
        "train",
        "--train",
        str(treebank),
        "--valid",
        str(treebank),
        "--output",
        str(run),
        "--preset",
        preset,
    ]
    result = CliRunner().invoke(app, [*arguments, *(f"--set={own}" for own in settings)])
    assert result.exit_code == 0, result.output
    return run


def trees_of(text: str) -> list[Tree]:
    return [tree for _, tree in read_trees(text.splitlines(), name="output")]


def test_trees_are_learned_with_a_token_for_each_bracket(model: Path, transduce: Command, treebank: Path) -> None:
    directory = load_model(model / "model")
    assert (directory.tokenizers.target.kind, directory.tokenizers.source.kind) == ("words", "bpe")
    result = transduce("evaluate", model, treebank, "--protocol", "parsing", "--json")
    assert result.exception is None, result.output
    scores = {own["name"]: own["value"] for own in json.loads(result.stdout)["scores"]}
    assert scores["F1"] > 95
    assert scores["invalid output"] == 0
    assert "tagging accuracy" not in scores


def test_rnnsearch_learns_trees_too(treebank: Path, transduce: Command) -> None:
    run = trained(treebank, "rnnsearch", RNNSEARCH)
    assert load_model(run / "model").description.architecture.kind == "rnnsearch"
    result = transduce("parse", run, "--text", "the cat sits here .")
    assert result.exception is None, result.output
    assert result.stdout.strip() == "(TOP (S (NP (XX the) (XX cat)) (VP (XX sits) (ADVP (XX here))) (XX .)))"


def test_every_line_gets_a_tree_over_exactly_its_words(model: Path, transduce: Command, tmp_path: Path) -> None:
    lines = ["the cat sits here .", "", "xyz ( <b> 100\u00a0000 \u00ad ) {name} https://x.org", "a " * 40]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = transduce("parse", model, tmp_path / "in.txt")
    assert result.exception is None, result.output
    first, second, third, fourth = result.stdout.split("\n")[:4]
    assert first == "(TOP (S (NP (XX the) (XX cat)) (VP (XX sits) (ADVP (XX here))) (XX .)))"
    assert second == ""
    assert trees_of(third)[0].words() == ["xyz", "(", "<b>", "100\u00a0000", "\u00ad", ")", "{name}", "https://x.org"]
    assert trees_of(fourth)[0].words() == ["a"] * 40


def test_the_other_forms_hold_the_same_tree(model: Path, transduce: Command, tmp_path: Path) -> None:
    text = "a dog runs now ."
    brackets = transduce("parse", model, "--text", text).stdout.strip()
    found = json.loads(transduce("parse", model, "--text", text, "--format", "json").stdout)
    assert (found["tree"], found["words"]) == (brackets, text.split())
    assert trees_of(transduce("parse", model, "--text", text, "--format", "indented").stdout) == trees_of(brackets)
    page = tmp_path / "page.html"
    assert transduce("parse", model, "--text", text, "--format", "page", "--output", page).exception is None
    assert page.read_text(encoding="utf-8").count("<svg") == 1
    assert transduce("parse", model, "--text", text, "--format", "svg").stdout.startswith("<svg")


def test_the_attention_report_has_the_brackets_of_the_tree(model: Path, transduce: Command) -> None:
    result = transduce("attention", model, "the cat sits here .", "--json")
    assert result.exception is None, result.output
    report = json.loads(result.stdout)
    shown = [token["text"].removeprefix("▁") for token in report["target"]["tokens"]]
    assert shown[:5] == ["(S", "(NP", "XX", "XX", ")NP"]


def test_training_may_start_from_a_model_of_trees(model: Path, transduce: Command, treebank: Path) -> None:
    output = treebank.parent / "adapted"
    result = transduce("train", "--train", treebank, "--start-from", model, "--output", output, "--dry-run")
    assert result.exception is None, result.output


def test_what_cannot_be_parsed_is_refused(model: Path, transduce: Command, small_model: Path, tmp_path: Path) -> None:
    def fault(*arguments: str | Path) -> TransduceError:
        found = transduce(*arguments).exception
        assert isinstance(found, TransduceError)
        return found

    assert isinstance(fault("parse", small_model, "--text", "a"), ModelError)
    assert "writes no trees" in str(fault("parse", small_model, "--text", "a"))
    assert "Line 1 has" in str(fault("parse", model, "--text", "a " * 3000))
    assert "An SVG holds one tree, and 0 lines" in str(fault("parse", model, "--text", " ", "--format", "svg"))
    assert isinstance(fault("parse", model, tmp_path / "absent.txt"), DataError)
    assert "Name a treebank" in str(fault("evaluate", model, "--protocol", "parsing"))


def test_parsing_needs_no_torch(model: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from transduce.cli.application import app\n"
        f"app(['parse', {str(model)!r}, '--text', 'the cat sits here .', '--threads', '1'])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.startswith("(TOP (S (NP (XX the)"), result.stderr
