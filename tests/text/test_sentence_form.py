"""Final punctuation and capitals: those of the source, and nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.sentence_form import keep_form


@pytest.mark.parametrize(
    ("source", "translation", "kept"),
    [
        ("Save", "Speichern.", "Speichern"),
        ("Open File", "Datei öffnen!", "Datei öffnen"),
        ("Price: {0}", "Preis: {0}.", "Preis: {0}"),
        ("Name:", "Name.", "Name:"),
        ("Loading...", "Es lädt.", "Es lädt..."),
        ("Save As…", "Speichern unter", "Speichern unter…"),
        ("It rains.", "Es regnet", "Es regnet."),
        ("Please come in.", "Komm bitte herein!", "Komm bitte herein!"),
        ('He said "go."', "Er sagte, geh.", "Er sagte, geh."),
        ("SAVE AS", "Speichern unter.", "SPEICHERN UNTER"),
        ("Save", "speichern", "Speichern"),
        ("12", "12.", "12"),
        ("=", "Nichts.", "="),
        ("Yes", ".", "."),
    ],
)
def test_the_form_of_the_source_is_kept(source: str, translation: str, kept: str) -> None:
    assert keep_form(source, translation, language="de") == kept


def test_a_small_first_letter_stays_small_where_nouns_have_no_capitals() -> None:
    assert keep_form("chat", "Cat", language="en") == "cat"
    assert keep_form("cat", "Katze", language="de") == "Katze"
    assert keep_form("radio", "USB", language="en") == "USB"


@given(st.text(max_size=20), st.text(max_size=20))
def test_it_is_done_after_once(source: str, translation: str) -> None:
    once = keep_form(source, translation, language="en")
    assert keep_form(source, once, language="en") == once
