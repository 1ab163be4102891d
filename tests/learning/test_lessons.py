"""Every notebook runs from top to bottom, is in the order of its number, and is copied as it is."""

import re
from pathlib import Path

import pytest
import torch

from transduce.learning.copying import copy_lessons, lessons_folder

NOTEBOOKS = sorted(lessons_folder().glob("lesson_*.py"))
EVERY = sorted(lessons_folder().glob("*.py"))
LONG = {"lesson_5_training", "lesson_6_gpt"}


def marked(path: Path) -> object:
    return pytest.param(path, id=path.stem, marks=[pytest.mark.extended] if path.stem in LONG else [])


@pytest.mark.parametrize("notebook", [marked(path) for path in EVERY])
def test_a_notebook_runs(notebook: Path) -> None:
    torch.manual_seed(0)
    exec(compile(notebook.read_text(encoding="utf-8"), str(notebook), "exec"), {"__name__": "notebook"})


def test_there_are_eight_with_exercises_in_the_form_that_jupytext_reads() -> None:
    assert [int(path.stem.split("_")[1]) for path in NOTEBOOKS] == list(range(1, 9))
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# ---\n# jupyter:\n#   jupytext:\n")
        _, _, exercises = text.partition("# ## Exercises\n")
        assert re.search(r"\bbroken_by_\w+\(", exercises), "the laws check an exercise"
        assert len(re.findall(r"^# %%", text, re.MULTILINE)) >= 6
        assert re.search(r"^assert ", text, re.MULTILINE), "a notebook that claims nothing cannot fail"


def test_the_page_of_lessons_lists_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "lessons" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"lessons/(\w+\.py)\)", page) == [path.name for path in EVERY]


def test_copies_keep_what_the_learner_wrote(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "lessons"
    written, kept = copy_lessons(folder)
    assert ([path.name for path in written], kept) == ([path.name for path in EVERY], [])
    assert all((folder / path.name).read_bytes() == path.read_bytes() for path in EVERY)
    own = folder / NOTEBOOKS[0].name
    own.write_text("mine", encoding="utf-8")
    (folder / NOTEBOOKS[1].name).unlink()
    written, kept = copy_lessons(folder)
    assert [path.name for path in written] == [NOTEBOOKS[1].name]
    assert len(kept) == 8
    assert own.read_text(encoding="utf-8") == "mine"
