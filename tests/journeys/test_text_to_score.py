"""From text to score on the bundled corpus, through the command line of the built wheel."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from safetensors.numpy import load_file

pytestmark = pytest.mark.slow

Run = Callable[..., "CompletedProcess[str]"]
QUICK = (
    "--threads=1",
    "--set=training.steps=30",
    "--set=training.validate_every=10",
    "--set=training.checkpoint_every=10",
    "--set=training.batch_tokens=512",
    "--set=model.d_model=32",
    "--set=model.d_ff=64",
    "--set=model.layers=1",
    "--set=model.vocabulary_size=800",
)


def test_from_text_to_score(run: Run, tmp_path: Path) -> None:
    run("demo", "--write-corpus", "corpus", "--pairs", "300")
    corpus = tmp_path / "corpus"
    assert {path.name for path in corpus.glob("*.tsv")} == {
        "train.tsv",
        "valid.tsv",
        "test.tsv",
        "test_combinations.tsv",
        "test_long.tsv",
    }
    languages = ("--from", "en", "--to", "de")
    planned = run("train", "--train", "corpus/train.tsv", *languages, "--output", "runs/d", *QUICK, "--dry-run")
    assert "Ctrl-C finishes the step and saves" in planned.stderr
    assert not (tmp_path / "runs/d/checkpoints").exists()

    trained = run("train", "--output", "runs/d")
    assert "training ended at step 30: its steps are done" in trained.stderr
    assert (tmp_path / "runs/d/report.html").read_text(encoding="utf-8").count("<script") == 2
    card = (tmp_path / "runs/d/model/README.md").read_text(encoding="utf-8")
    assert card.startswith("# en → de")
    assert "Intended use and limits" in card

    sources = (corpus / "test.tsv").read_text(encoding="utf-8").splitlines()[:7]
    (tmp_path / "in.txt").write_text("".join(line.split("\t")[0] + "\n" for line in sources) + "\n\n", encoding="utf-8")
    translated = run("translate", "runs/d", "in.txt", "--threads=1")
    assert translated.stdout.count("\n") == 9
    assert translated.stdout.endswith("\n\n\n")
    run("translate", "runs/d", "in.txt", "--output", "out.txt", "--threads=1")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == translated.stdout
    refused = run("translate", "runs/d", "in.txt", "--output", "out.txt", exit_code=2)
    assert "out.txt exists already. Add --force" in refused.stderr
    one = json.loads(run("translate", "runs/d", "--text", "The dog sleeps.", "--json", "--threads=1").stdout)
    assert one["text"] == one["alternatives"][0]["text"]
    absent = run("translate", "runs/d", "The dog sleeps.", exit_code=2)
    assert "does not exist" in absent.stderr
    assert "--text" in absent.stderr

    scores = json.loads(run("evaluate", "runs/d", "corpus/test.tsv", "--json", "--threads=1").stdout)
    assert "BLEU" in json.dumps(scores)
    run("average", "runs/d", "--last", "2")
    run("attention", "runs/d", "The dog sleeps.", "--output", "page.html", "--threads=1")
    assert "What every head attended to" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_run_goes_on_is_refused_and_begins_anew(run: Run, tmp_path: Path) -> None:
    run("demo", "--write-corpus", "corpus", "--pairs", "200")
    run("train", "--train", "corpus/train.tsv", "--output", "runs/a", *QUICK, "--set=training.steps=10")
    more = run("train", "--output", "runs/a", "--set", "training.steps=20")
    assert "training ended at step 20" in more.stderr
    other = run("train", "--output", "runs/a", "--set", "training.seed=9", exit_code=2)
    assert "training.seed was 1 and is now 9" in other.stderr
    assert "Traceback" not in other.stderr
    onward = ("--train", "corpus/test.tsv", "--output", "runs/b", "--start-from", "runs/a", "--threads=1")
    begun = run("train", *onward, "--set=training.steps=5", "--set=training.validate_every=5")
    assert "training ended at step 5" in begun.stderr
    run("train", *onward[:3], "runs/c", *onward[4:], "--set=training.steps=9")
    again = run("train", *onward, "--set=training.steps=7")
    assert "training ended at step 7" in again.stderr
    shutil.move(tmp_path / "corpus", tmp_path / "moved")
    shutil.move(tmp_path / "runs/a", tmp_path / "runs/elsewhere")
    run("train", "--train", "moved/test.tsv", *onward[2:], "--set=training.steps=9")
    ends = [tmp_path / f"runs/{name}/checkpoints/step-00000009/model.safetensors" for name in "bc"]
    assert ends[0].read_bytes() == ends[1].read_bytes()
    shutil.rmtree(tmp_path / "runs/b/checkpoints")
    assert "runs/a" in run("train", "--output", "runs/b", "--set=training.steps=11", exit_code=2).stderr
    shutil.move(tmp_path / "runs/elsewhere", tmp_path / "runs/a")
    sizes = [json.loads((tmp_path / f"runs/{r}/model/config.json").read_text(encoding="utf-8")) for r in "ab"]
    fine_tuned = {"dropout": sizes[1]["architecture"]["dropout"]}
    assert sizes[0]["architecture"] | fine_tuned == sizes[1]["architecture"]
    nothing = run("train", "--output", "runs/none", exit_code=2)
    assert "Name the training text" in nothing.stderr


def test_an_experiment_file_is_written_edited_and_run(run: Run, tmp_path: Path) -> None:
    run("demo", "--write-corpus", "corpus", "--pairs", "100")
    run("train", "--train", "corpus/train.tsv", "--preset", "tiny", "--write-experiment", "mine.toml")
    text = (tmp_path / "mine.toml").read_text(encoding="utf-8")
    assert "# Width of the embeddings" in text
    (tmp_path / "mine.toml").write_text(text.replace("d_ff = 256", "d_ff = 0"), encoding="utf-8")
    assert "model.d_ff = 0" in run("train", "mine.toml", "--output", "runs/m", exit_code=2).stderr
    (tmp_path / "mine.toml").write_text(text.replace("d_ff = 256", "d_ff = 64"), encoding="utf-8")
    run("train", "mine.toml", "--set", "training.steps=2", "--threads=1")
    assert (tmp_path / "runs/mine/model/weights.safetensors").exists()


def test_a_shortlist_that_training_learns_is_what_translation_uses(run: Run, tmp_path: Path) -> None:
    run("demo", "--write-corpus", "corpus", "--pairs", "300")
    begin = ("train", "--train", "corpus/train.tsv", "--from", "en", "--to", "de", "--output")
    unlearned = run(*begin, "runs/x", *QUICK, "--set=decoding.shortlist=true", exit_code=2)
    assert "Set training.shortlist = 50, or leave out decoding.shortlist." in " ".join(unlearned.stderr.split())
    run(*begin, "runs/d", *QUICK)
    assert not (tmp_path / "runs/d/model/shortlist.safetensors").exists()
    without = run("translate", "runs/d", "--text", "The dog sleeps.", "--shortlist", exit_code=2)
    assert "holds no shortlist. Train with training.shortlist = 50" in " ".join(without.stderr.split())

    # It alters no weight, so a run may learn it later.
    run("train", "--output", "runs/d", "--set=training.steps=40", "--set=training.shortlist=12")
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
