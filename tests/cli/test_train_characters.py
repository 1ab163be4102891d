"""A model of characters through the command line: trained, translating, scored, looked into, started from."""

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from transduce.model_directory import load_model

PAIRS = ("a red dog\tein roter Hund", "two cats\tzwei Katzen", "it rains\tes regnet", "the old man\tder alte Mann")
QUICK = (
    *("--threads=1", "--set=training.precision=float32", "--set=data.held_out_valid=2", "--set=data.held_out_test=0"),
    *("--set=training.steps=4", "--set=training.validate_every=4", "--set=training.checkpoint_every=4"),
    *("--set=training.batch_tokens=256", "--set=training.warmup_steps=2", "--set=training.average_last=1"),
)
SMALL = (
    *("--set=data.pieces=characters", "--set=model.d_model=16", "--set=model.heads=2", "--set=model.d_ff=24"),
    *("--set=model.layers=1", "--set=training.shortlist=3"),
)


def test_a_model_of_characters_from_text_to_attention(transduce: Callable[..., Result], tmp_path: Path) -> None:
    def run(*arguments: str | Path) -> str:
        result = transduce(*arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    corpus, trained = tmp_path / "corpus.tsv", tmp_path / "run"
    corpus.write_text("".join(f"{number} {pair}\n" for number in range(5) for pair in PAIRS), encoding="utf-8")
    run("train", "--train", corpus, "--output", trained, "--preset", "tiny", *QUICK, *SMALL)
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
