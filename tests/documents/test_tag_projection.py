"""Tags for a model that cannot copy them: found again around the words that they had, or the segment is left."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.documents.growth import same

from transduce.data.formats import Selection
from transduce.documents.filling import FillingReport, document_of, fill_at_once
from transduce.translator import Translation
from transduce.translator.translation import Alternative

GERMAN = {
    "The dog sleeps in the garden.": "Der Hund schläft im Garten.",
    "dog": "Hund.",
    "the garden": "Der Garten.",
    "I saw a red car yesterday.": "Gestern sah ich ein rotes Auto.",
    "red car": "Rotes Auto",
    "yesterday": "gestern",
    "My name is Tom.": "Ich heiße Tom.",
    "Tom": "Thomas ist da.",
    "You can read the book now.": "Du kannst das Buch jetzt lesen.",
    "read the book": "Lies das Buch.",
    "book": "Buch",
    "red and red": "rot und rot",
    "red": "rot",
    "click here": "hier klicken",
    "Please click here to enter.": "Bitte treten Sie ein.",
}


def translate(texts: Sequence[str], first: int) -> list[Translation]:
    return [Translation(text, (Alternative(GERMAN[text], 0.0, 0.0, (), is_finished=True),)) for text in texts]


def filled(page: str, answer: Callable[[Sequence[str], int], list[Translation]]) -> tuple[str, FillingReport]:
    document = document_of(page.encode(), "html", path=Path("x.html"), selection=Selection("en", "de"))
    content, report = fill_at_once(replace(document, copies_tags=False), "html", answer)
    return content.decode(), report


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<p>The <b>dog</b> sleeps in the garden.</p>", "<p>Der <b>Hund</b> schläft im Garten.</p>"),
        (
            "<p>I saw a <a href='x'>red car</a> <em>yesterday</em>.</p>",
            "<p><em>Gestern</em> sah ich ein <a href='x'>rotes Auto</a>.</p>",
        ),
        (
            "<p>You can <b>read the <i>book</i></b> now.</p>",
            "<p>Du kannst <b>das <i>Buch</i></b> jetzt lesen.</p>",
        ),
        ("<p>My name is <b>Tom</b>.</p>", "<p>Ich heiße <b>Tom</b>.</p>"),
        ("<p>You can read the <i><u>book</u></i> now.</p>", "<p>Du kannst das <i><u>Buch</u></i> jetzt lesen.</p>"),
        ("<p><b>red</b> and <i>red</i></p>", "<p><b>rot</b> und <i>rot</i></p>"),
        ("<p><b>dog</b></p>", "<p><b>Hund.</b></p>"),
    ],
)
def test_tags_are_put_around_the_same_words(before: str, after: str) -> None:
    assert filled(before, translate) == (after, FillingReport(filled=1))


def test_words_that_are_not_found_leave_the_segment_as_it_was() -> None:
    page = "<p>Please <a>click here</a> to enter.</p>"
    content, report = filled(page, translate)
    assert content == page
    assert "in the translation is not known" in report.left[0][1]


def test_tags_alone_are_still_placeholders() -> None:
    page = "<p>one <img src='x'> two</p>"
    assert filled(page, lambda texts, first: [same(text) for text in texts]) == (page, FillingReport(filled=1))
