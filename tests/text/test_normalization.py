import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transduce.text.normalization import LONGEST_RUN_OF_MARKS, normalize, normalize_with_starts

# Any code point at all, lone surrogates too, and often those that normalisation touches.
TOUCHED = st.sampled_from(
    "\t\n\r\x00\x85\xa0\xad\u2002\u2028\u2060\u2581\u3000\ufeff\ud800\udfff e\u0301\u0323\u1100\u1161\u11a8\u212b\u0958"
)
ANY_TEXT = st.text(st.one_of(st.characters(exclude_categories=()), TOUCHED))


@given(ANY_TEXT)
def test_a_normalised_text_is_left_as_it_is(text: str) -> None:
    assert normalize(normalize(text)) == normalize(text)


@given(ANY_TEXT)
def test_a_normalised_text_can_be_written_on_one_line_of_a_file(text: str) -> None:
    normal = normalize(text)
    normal.encode("utf-8")
    assert unicodedata.is_normalized("NFC", normal)
    assert "\u2581" not in normal
    assert normal.split(" ") == normal.split() or normal == ""
    assert not any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in normal)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Guten Tag.", "Guten Tag."),
        ("  two   spaces ", "two spaces"),
        ("tab\tnew\r\nline\x00nul", "tab new line nul"),
        ("10\xa0000\u202f€ ideographic\u3000space", "10 000 € ideographic space"),
        ("cafe\u0301", "caf\xe9"),
        ("\u212bngstro\u0308m", "\xc5ngstr\xf6m"),
        ("\u1112\u1161\u11ab", "\ud55c"),
        ("Donau\xaddampf\ufeff", "Donaudampf"),
        ("\u2581x\u2581", "_x_"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ("e\xad\u0301", "\xe9"),
        ("ﬁ ½ ™", "ﬁ ½ ™"),  # NFKC would change all three
        ("क\u094d\u200dष", "क\u094d\u200dष"),  # joiners carry meaning
        ("a" + "\u0301" * 30 + "\u0323", "\xe1" + "\u0301" * 29),  # the 31st goes before any is sorted or composed
        ("x" + "\u0323" * 40, "x" + "\u0323" * 30),
        ("", ""),
        (" \n\u3000", ""),
    ],
)
def test_worked_examples(text: str, normal: str) -> None:
    assert normalize(text) == normal


@given(ANY_TEXT)
@example("\u1112\u1161\u11ab")
def test_starts_belong_to_the_same_normal_form_and_rise_through_the_text(text: str) -> None:
    normal, starts = normalize_with_starts(text)
    assert normal == normalize(text)
    assert len(starts) == len(normal)
    assert starts == sorted(starts)
    assert all(0 <= start < len(text) for start in starts)


@given(ANY_TEXT)
@example("e\u0301\u0323x")
@example("\u0958\u0301")
def test_each_share_normalises_to_the_characters_that_stand_for_it(text: str) -> None:
    normal, starts = normalize_with_starts(text)
    borders = [*dict.fromkeys(starts), len(text)]
    for start, end in pairwise(borders):
        characters = "".join(character for character, at in zip(normal, starts, strict=True) if at == start)
        # A word's share may hold the spaces and invisible characters after it, and those beyond the limit of marks.
        assert normalize("." + text[start:end] + ".").startswith("." + characters.rstrip(" "))


def test_starts_of_a_worked_example() -> None:
    #                   0123    4 567   89
    text = "\ufeff A\u030a\u00a0\u00a0b\xadc "
    assert normalize_with_starts(text) == ("\xc5 bc", [2, 4, 6, 8])


@pytest.mark.slow
@pytest.mark.extended
def test_every_code_point_alone_and_among_marks() -> None:
    for block in range(0, 0x110000, 0x400):
        text = " ".join(f"{chr(number)} a{chr(number)}\u0301\u0323" for number in range(block, block + 0x400))
        normal = normalize(text)
        assert normalize(normal) == normal
        assert normalize_with_starts(text)[0] == normal


def test_a_megabyte_of_unsorted_marks_is_cut_short() -> None:
    # Sorting them would take quadratic time: if the limit did not hold, this test would not end.
    normal = normalize("a" + "\u0301\u0323" * 500_000 + "b")
    assert sum(map(bool, map(unicodedata.combining, normal))) <= LONGEST_RUN_OF_MARKS
    assert normal[-1] == "b"
