"""A shortlist from training to translation, through the command line of the built wheel."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from safetensors.numpy import load_file

pytestmark = pytest.mark.slow

Run = Callable[..., "CompletedProcess[str]"]
QUICK = (
    "--threads=1",
    "--set=training.steps=20",
    "--set=training.validate_every=10",
    "--set=training.checkpoint_every=10",
    "--set=training.batch_tokens=512",
    "--set=model.d_model=32",
    "--set=model.d_ff=64",
    "--set=model.layers=1",
    "--set=model.vocabulary_size=800",
)


def test_what_training_learns_translation_uses(run: Run, tmp_path: Path) -> None:
    run("demo", "--write-corpus", "corpus", "--pairs", "300")
    begin = ("train", "--train", "corpus/train.tsv", "--from", "en", "--to", "de", "--output")
    unlearned = run(*begin, "runs/x", *QUICK, "--set=decoding.shortlist=true", exit_code=2)
    assert "Set training.shortlist = 50, or leave out decoding.shortlist." in " ".join(unlearned.stderr.split())
    run(*begin, "runs/d", *QUICK)
    assert not (tmp_path / "runs/d/model/shortlist.safetensors").exists()
    without = run("translate", "runs/d", "--text", "The dog sleeps.", "--shortlist", exit_code=2)
    assert "holds no shortlist. Train with training.shortlist = 50" in " ".join(without.stderr.split())

    # It alters no weight, so a run may learn it later.
    run("train", "--output", "runs/d", "--set=training.steps=30", "--set=training.shortlist=12")
    lists = load_file(tmp_path / "runs/d/model/shortlist.safetensors")
    assert lists["common"].shape == (12,)
    assert lists["candidates"].shape == (800, 12)
    run("average", "runs/d", "--last", "2")
    run("export", "runs/d", "small", "--format", "transduce", "--weights", "int8")
    for model in ("runs/d", "small"):
        found = run("translate", model, "--text", "The dog sleeps.", "--shortlist", "--json", "--threads=1")
        assert json.loads(found.stdout)["text"]
    arguments = ("evaluate", "small", "corpus/test.tsv", "--threads=1", "--precision=int8")
    assert "int8, shortlist, 1 thread" in run(*arguments, "--shortlist").stdout
    assert json.loads(run(*arguments, "--no-shortlist", "--json").stdout)["shortlist"] is False
