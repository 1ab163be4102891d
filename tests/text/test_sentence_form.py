"""Final punctuation and capitals: those of the source, and nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.sentence_form import in_small_letters, keep_form

LINES = [
    "please don't open the door",
    "today Tom and Ann are in Boston",
    "das ist ein großer Hund",
    "save at times",
    "new folder",
]
ENCODE = BpeTokenizer.learn(LINES * 20, vocabulary_size=420).encode


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
        ("OPEN {name} NOW", "{name} jetzt öffnen", "{name} JETZT ÖFFNEN"),
        ("DIE STRAßE", "The street", "THE STREET"),
        ("NASAの写真", "Foto der NASA", "Foto der NASA"),
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


@pytest.mark.parametrize(
    "sentence",
    [
        "Please don't open the door!",
        "Today Tom and Ann are in Boston.",
        "„Das ist ein Hund“",
        "Save {NAME} at %s, 7 times",
        "<B>New folder</B>",
    ],
)
def test_the_model_reads_capitals_in_the_letters_that_its_vocabulary_knows(sentence: str) -> None:
    assert in_small_letters(sentence.upper().replace("%S", "%s"), ENCODE) == sentence


def test_a_sentence_in_capitals_may_have_an_ß() -> None:
    assert in_small_letters("EIN GROßER HUND", ENCODE) == "Ein großer Hund"


@pytest.mark.parametrize(
    "sentence", ["NASA", "USB 3.0", "PDF (A4)", "I AM", "{NAME} {CITY}", "The USA", "東京大学 NASA ESA", ""]
)
def test_acronyms_and_placeholders_are_no_text_in_capitals(sentence: str) -> None:
    assert in_small_letters(sentence, ENCODE) == sentence


@given(st.text(max_size=20).map(str.upper) | st.text(max_size=20))
def test_small_letters_move_nothing(sentence: str) -> None:
    read = in_small_letters(sentence, ENCODE)
    assert len(read) == len(sentence)
    assert in_small_letters(read, ENCODE) == read
