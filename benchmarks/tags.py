"""Where tags go: how many of 50 English sentences with tags have them around the right German words.

    python benchmarks/tags.py [MODEL]

tags.tsv has the sentences, and for each pair of tags, in the order in which they open, the words that it may enclose,
judged by hand on the translations of en-de as it was on 2026-11-19; those of another model may need other words. Every
sentence is a paragraph of an HTML page, filled in twice: with the tags placed by word alignment, and by the likeness of
words, as where words are not aligned. Prints every paragraph that is not right.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path

from transduce.data.formats import Selection
from transduce.documents.filling import document_of, fill_at_once
from transduce.translator import Translator

TAGS = Path(__file__).parent / "tags.tsv"
TAG = re.compile(r"<(/?)[a-z][^>]*>")


def enclosed(text: str) -> list[str]:
    """Return the text in each pair of tags, in the order in which they open, without tags."""
    found: list[tuple[int, str]] = []
    opened: list[int] = []
    for tag in TAG.finditer(text):
        if tag[1]:
            start = opened.pop()
            found.append((start, TAG.sub("", text[start : tag.start()])))
        else:
            opened.append(tag.end())
    return [words for _, words in sorted(found)]


def main() -> None:
    """Print the counts and what is not right."""
    translator = Translator.load(*(sys.argv[1:] or ["en-de"]), threads=1)
    rows = [line.split("\t") for line in TAGS.read_text(encoding="utf-8").splitlines()]
    for way, copies_tags in (("word alignment", True), ("likeness", False)):
        right = left = 0
        for sentence, *wanted in rows:
            page = f"<p>{sentence}</p>".encode()
            document = document_of(page, "html", path=Path("page.html"), selection=Selection("en", "de"))
            content, report = fill_at_once(
                replace(document, copies_tags=copies_tags), "html", lambda texts, _: translator.translate(texts)
            )
            # Pairs may change places: compare them without their order.
            found = sorted(enclosed(content.decode()[3:-4]))
            is_right = any(found == sorted(choice) for choice in choices(wanted)) and not report.left
            right, left = right + is_right, left + len(report.left)
            if not is_right:
                print(f"    {content.decode()}")
        print(f"{way}: {right} of {len(rows)} right, {left} left untranslated")


def choices(wanted: list[str]) -> list[list[str]]:
    """Return every list of words that has one choice for each pair."""
    if not wanted:
        return [[]]
    return [[words, *rest] for words in wanted[0].split("|") for rest in choices(wanted[1:])]


if __name__ == "__main__":
    main()
