"""Numbers in words, compared with rules that read them back."""

import pytest

from demo_grammar.numerals import (
    english_hour,
    english_number,
    english_ordinal,
    german_hour,
    german_number,
    german_ordinal,
)

GERMAN = {"ein": 1, "eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8}
GERMAN |= {"neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "sechzehn": 16, "siebzehn": 17, "null": 0}
GERMAN |= {"zwanzig": 20, "dreißig": 30, "sechzig": 60, "siebzig": 70}


def read_german(word: str) -> int:
    """Return the number that a German word means."""
    if word in GERMAN:
        return GERMAN[word]
    ones, und, tens = word.partition("und")
    if und:
        return read_german(ones) + read_german(tens)
    if word.endswith("zehn"):
        return read_german(word.removesuffix("zehn")) + 10
    return read_german(word.removesuffix("zig")) * 10


def test_german_numbers_read_back() -> None:
    assert [read_german(german_number(number)) for number in range(100)] == list(range(100))


def test_english_numbers_are_all_different_and_hyphenated_in_the_middle() -> None:
    words = [english_number(number) for number in range(100)]
    assert len(set(words)) == 100
    assert all(("-" in word) == (number > 20 and number % 10 > 0) for number, word in enumerate(words))
    for tens in range(2, 10):
        assert words[tens * 10 + 7] == f"{words[tens * 10]}-seven"


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (1, "first", "erst"),
        (2, "second", "zweit"),
        (3, "third", "dritt"),
        (7, "seventh", "siebt"),
        (8, "eighth", "acht"),
        (9, "ninth", "neunt"),
        (12, "twelfth", "zwölft"),
        (16, "sixteenth", "sechzehnt"),
        (20, "twentieth", "zwanzigst"),
        (21, "twenty-first", "einundzwanzigst"),
        (30, "thirtieth", "dreißigst"),
    ],
)
def test_ordinals(number: int, english: str, german: str) -> None:
    assert (english_ordinal(number), german_ordinal(number)) == (english, german)


@pytest.mark.parametrize(
    ("quarters", "english", "german"),
    [
        (4 * 1, "at one o'clock", "um ein Uhr"),
        (4 * 1 + 1, "at a quarter past one", "um Viertel nach eins"),
        (4 * 7 + 2, "at half past seven", "um halb acht"),
        (4 * 12 + 2, "at half past twelve", "um halb eins"),
        (4 * 12 + 3, "at a quarter to one", "um Viertel vor eins"),
        (4 * 11 + 3, "at a quarter to twelve", "um Viertel vor zwölf"),
    ],
)
def test_hours(quarters: int, english: str, german: str) -> None:
    assert (english_hour(quarters), german_hour(quarters)) == (english, german)
