"""The learning page: with the lessons inside as one file, or as a server gives it, which computes each lesson."""

from collections.abc import Mapping, Sequence
from importlib.resources import files as package_files
from typing import Any, Literal

from transduce.inspection.page import one_file, web_files, with_data
from transduce.learning.code_lines import quoted_lines

_NAME, _ENTRY = "learn.html", "learn.js"


def bundled_sentences(*, source: Literal["en", "de"] = "en") -> list[tuple[str, str]]:
    """Return the sentences that the page offers, each with a translation by a person into the other language."""
    text = (package_files("transduce") / "learning" / "sentences.en-de.tsv").read_text(encoding="utf-8")
    pairs = (line.split("\t") for line in text.splitlines())
    return [(english, german) if source == "en" else (german, english) for english, german in pairs]


def learning_page(lessons: Sequence[Mapping[str, Any]]) -> str:
    """Return the page as one file, with these lessons; it loads nothing from the network."""
    assert lessons, "a page needs a lesson"
    return one_file(_NAME, entry=_ENTRY, data={"facts": _facts(), "lessons": list(lessons)})


def served_learning_page() -> str:
    """Return the page for a server, which gives its modules and styles and computes the lesson of any sentence."""
    return with_data((web_files() / _NAME).read_text(encoding="utf-8"), {"facts": _facts()})


def _facts() -> dict[str, Any]:
    sentences = [{"text": source, "reference": target} for source, target in bundled_sentences()]
    return {"code": quoted_lines(), "sentences": sentences}
