"""`transduce distill` and `transduce back-translate` refuse what cannot be meant, before any work.

`tests/pipeline/test_distilling.py` has what they make; `test_output_places.py` runs both commands.
"""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.faults import small_run

TEXT = ("--text-file", "text.en", "--output", "out")
REFUSALS = {
    ("distill", *TEXT): "Give a teacher, or --teacher-output FILE",
    ("distill", "en-de", "--teacher-output", "text.en", *TEXT): "Give a teacher, or --teacher-output FILE",
    ("distill", "no-model", *TEXT): "no bundled model of that name",
    ("distill", "en-de", "--text-file", "none.gz", "--output", "out"): "none.gz is no file, and no pattern",
    ("distill", "en-de", "--train", "none.tsv", *TEXT): "none.tsv does not exist",
    ("back-translate", "--train", "a.tsv", "--weight", "much", *TEXT): "--weight much: write a number",
    ("back-translate", "--train", "few.tsv", *TEXT): "Too few pairs to hold some out",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.en").write_text("A dog runs.\n" * 3, encoding="utf-8")
    (tmp_path / "few.tsv").write_text("A dog runs.\tEin Hund läuft.\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("arguments", REFUSALS, ids=" ".join)
def test_refusals(arguments: tuple[str, ...], folder: Path, transduce: Command) -> None:
    result = transduce(*arguments)
    assert REFUSALS[arguments] in str(result.exception)
    assert not (folder / "out" / "model").exists()


@pytest.mark.slow
def test_the_student_is_compared_with_its_teacher(folder: Path, transduce: Command) -> None:
    pairs = small_run.write_text(folder / "corpus")
    settings = [word for setting in small_run.overrides() for word in ("--set", setting)]
    files = ("--text-file", "text.en", "--train", pairs, "--test", folder / "corpus" / "test.tsv")
    options = ("--student", "tiny", "--decoder", "shallow", "--beam", "1", "--threads", "1", "--output", "out")
    result = transduce("distill", "en-de", *files, *options, *settings, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads((folder / "out" / "comparison.json").read_text())
    teacher, student = found["models"]["teacher"], found["models"]["student"]
    assert found["sentences"] == len((folder / "corpus" / "test.tsv").read_text().splitlines())
    assert teacher["BLEU"] > student["BLEU"]
    gap, low, high = student["gap"]["BLEU"]
    assert gap == pytest.approx(student["BLEU"] - teacher["BLEU"])
    assert low <= gap <= high < 0
    assert student["megabytes"] < teacher["megabytes"]
    assert min(teacher["sentences_per_second"], student["sentences_per_second"]) > 0
    again = transduce("distill", "en-de", *files, *options, *settings)
    assert "training the student" not in again.output
    assert "teacher" in again.output
