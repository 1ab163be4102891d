"""Accelerators: the mark leaves the text and comes back before a letter."""

from collections.abc import Callable

import pytest

from transduce.documents.accelerators import AcceleratedText
from transduce.documents.filling import FillingReport

Fill = Callable[..., tuple[bytes, FillingReport]]


@pytest.mark.parametrize(
    ("text", "bare", "translation", "marked"),
    [
        ("_File", "File", "Datei", "_Datei"),
        ("Show _Help", "Show Help", "Zeige die Hilfe", "Zeige die _Hilfe"),
        ("&Save %s", "Save %s", "%s jetzt sichern", "%s jetzt &sichern"),
        ("_Quit", "Quit", "%s", "%s"),
        ("_Undo", "Undo", "{u} Rückgängig: zurück", "{u} Rückgängig: z_urück"),
        ("_Über", "Über", "about über", "about _über"),
        ("Cu_t", "Cut", "Ausschneiden", "_Ausschneiden"),
        ("Do&n't save", "Don't save", "Nicht sichern", "&Nicht sichern"),
        ("AT&T Tom&amp;Jerry", "AT&T Tom&amp;Jerry", "x", "x"),
        ("snake_case", "snake_case", "x", "x"),
        ("_a and _b", "_a and _b", "x", "x"),
        ("R&D &amp; more", "R&D &amp; more", "x", "x"),
        ("2 _ 3 & 4", "2 _ 3 & 4", "x", "x"),
    ],
)
def test_the_mark_goes_before_the_same_letter_if_there_is_one(
    text: str, bare: str, translation: str, marked: str
) -> None:
    accelerated = AcceleratedText.of(text)
    assert accelerated.text == bare
    assert accelerated.marked(translation) == marked


def test_a_catalogue_is_translated_without_marks_and_filled_with_them(fill: Fill) -> None:
    catalogue = 'msgid "_Open %s"\nmsgstr ""\n\nmsgid "translator-credits"\nmsgstr ""\n'
    seen: list[str] = []

    def answer(text: str) -> str:
        seen.append(text)
        return f"{text.removeprefix('Open ')} öffnen"

    content, report = fill("x.po", catalogue, answer=answer)
    assert len(seen) == 1
    assert "_" not in seen[0]
    assert 'msgstr "%s _öffnen"' in content.decode()
    assert [why for _, why, _ in report.left] == ["it is for the names of the translators"]
