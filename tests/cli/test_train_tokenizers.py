"""Models with other tokenizers through the command line: trained, translating, scored, looked into, started from."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from transduce.model_directory import load_model

PAIRS = ("a red dog\tein roter Hund", "two cats\tzwei Katzen", "it rains\tes regnet", "the old man\tder alte Mann")
QUICK = (
    *("--threads=1", "--set=training.precision=float32", "--set=data.held_out_valid=2", "--set=data.held_out_test=0"),
    *("--set=training.steps=4", "--set=training.validate_every=4", "--set=training.checkpoint_every=4"),
    *("--set=training.batch_tokens=256", "--set=training.warmup_steps=2", "--set=training.average_last=1"),
)
SMALL = (
    *("--preset=tiny", "--set=model.d_model=16", "--set=model.heads=2", "--set=model.d_ff=24", "--set=model.layers=1"),
    "--set=training.shortlist=3",
)
Run = Callable[..., str]


@pytest.fixture
def run(transduce: Callable[..., Result]) -> Run:
    def run(*arguments: str | Path) -> str:
        result = transduce(*arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    return run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{number} {pair}\n" for number in range(5) for pair in PAIRS), encoding="utf-8")
    return path


def test_a_model_of_characters_from_text_to_attention(run: Run, corpus: Path, tmp_path: Path) -> None:
    trained = tmp_path / "run"
    run("train", "--train", corpus, "--output", trained, *QUICK, *SMALL, "--set=data.pieces=characters")
    pair = load_model(trained / "model").tokenizers
    assert (pair.target.kind, pair.is_shared) == ("characters", True)
    assert json.loads((trained / "model/config.json").read_text(encoding="utf-8"))["format_version"] == 2

    answer = json.loads(run("translate", trained, "--text", "a red dog, {name}", "--threads=1", "--json"))
    pieces = {pair.target.piece(token): token for token in range(pair.vocabulary_size)}
    written = pair.target.decode([pieces[piece] for piece in answer["alternatives"][0]["tokens"]])
    assert answer["text"].replace("{name}", "\ufdd0") == written
    report = json.loads(run("attention", trained, "a red dog", "--threads=1", "--json"))
    assert [token["text"] for token in report["source"]["tokens"]] == [*"a▁red▁dog", "<EOS>"]
    assert [token["word"] for token in report["source"]["tokens"]] == [0, *[1] * 4, *[2] * 4, None]
    assert report["target"]["tokens"][-1]["text"] in pieces or report["target"]["tokens"][-1]["text"] == "<EOS>"
    assert "BLEU" in run("evaluate", trained, corpus, "--threads=1", "--json")
    run("translate", trained, corpus, "--shortlist", "--output", tmp_path / "out.tsv", "--threads=1")
    assert (tmp_path / "out.tsv").read_text(encoding="utf-8").count("\n") == 20

    again = tmp_path / "again"
    run("train", "--train", corpus, "--output", again, "--start-from", trained, *QUICK)
    assert load_model(again / "model").tokenizers.fingerprint == pair.fingerprint


def test_separate_vocabularies_with_teachers_dropout_and_shortlist(run: Run, corpus: Path, tmp_path: Path) -> None:
    trained, sizes = tmp_path / "run", ("--set=model.vocabulary_size=320", "--set=model.source_vocabulary_size=300")
    more = ("--set=training.bpe_dropout=0.1", "--set=training.teacher_steps=2", "--set=model.tied=decoder")
    separate = ("--set=data.vocabularies=separate", *sizes, *more)
    run("train", "--train", corpus, "--output", trained, *QUICK, *SMALL, *separate)
    model, pair = load_model(trained / "model"), load_model(trained / "model").tokenizers
    assert (pair.source.vocabulary_size, pair.target.vocabulary_size) == (300, 320)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.parameters.items() if name.endswith("_VD")}
    assert sorted(shapes.values()) == [(300, 16), (320, 16)]
    shortlist = model.shortlist()
    assert shortlist is not None
    assert shortlist.candidates_VK.shape == (300, 3)
    teachers = [load_model(trained / f"teachers/{direction}/model").tokenizers for direction in ("forward", "backward")]
    assert [own.fingerprint for own in teachers] == [pair.fingerprint, pair.reversed().fingerprint]

    listed = shortlist.tokens(pair.encode_source("1 a red dog"))
    answer = json.loads(run("translate", trained, "--text", "1 a red dog", "--shortlist", "--threads=1", "--json"))
    assert set(answer["alternatives"][0]["tokens"]) <= {pair.target.piece(token) for token in listed}
    report = json.loads(run("attention", trained, "two", "--target", "zwei", "--threads=1", "--json"))
    assert [token["id"] for token in report["source"]["tokens"]] == pair.encode_source("two")
    assert [token["id"] for token in report["target"]["tokens"]] == pair.encode_targets(["zwei"])[0]
    assert "BLEU" in run("evaluate", trained, corpus, "--threads=1", "--json")

    again = tmp_path / "again"
    run("train", "--train", corpus, "--output", again, "--start-from", trained, *QUICK)
    assert load_model(again / "model").tokenizers.fingerprint == pair.fingerprint
