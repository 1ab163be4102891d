"""Cutting paragraphs: nothing is lost, and what is cut is short enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.sentences import Segment, segments, shorter_parts

any_text = st.text(st.characters() | st.sampled_from(list(" .!?\n\r\t,;\ud800\u2028\x00")), max_size=80)


@given(any_text)
def test_joined_again_segments_are_the_text(text: str) -> None:
    assert "".join(segment.text for segment in segments(text, language="en")) == text


@given(any_text)
def test_sentences_have_no_space_around_them_and_hold_no_line_end(text: str) -> None:
    for segment in segments(text, language=None):
        if segment.is_sentence:
            assert segment.text == segment.text.strip()
            assert "\n" not in segment.text
        else:
            assert not segment.text.strip()


@pytest.mark.parametrize("space", ["\xa0", "\x85", "\u202f", " \u3000"])
def test_wide_spaces_before_a_period_are_kept(space: str) -> None:
    text = f"It is plan B{space}. We go."
    assert [segment.text for segment in segments(text, language="en")] == [f"It is plan B{space}.", " ", "We go."]


def test_a_paragraph_by_hand() -> None:
    found = segments("  Dr. Smith came.  He left!\r\n\tWhy?\n", language="en")
    sentences = [segment.text for segment in found if segment.is_sentence]
    assert sentences == ["Dr. Smith came.", "He left!", "Why?"]
    assert found[0] == Segment("  ", is_sentence=False)
    assert "".join(segment.text for segment in found[-3:]).endswith("\tWhy?\n")


@given(st.text(st.sampled_from(list("ab ,.;")), max_size=200), st.integers(min_value=1, max_value=20))
def test_parts_join_again_and_fit(text: str, longest: int) -> None:
    parts = shorter_parts(text, length=len, longest=longest)
    assert "".join(parts) == text
    assert all(len(part) <= longest for part in parts)


def test_cuts_come_after_punctuation_before_words_before_anywhere() -> None:
    def words(text: str) -> int:
        return len(text.split())

    assert shorter_parts("one two, three four five", length=words, longest=3) == ["one two, ", "three four five"]
    assert shorter_parts("one two three four", length=words, longest=2) == ["one ", "two ", "three ", "four"] or all(
        words(part) <= 2 for part in shorter_parts("one two three four", length=words, longest=2)
    )
    assert shorter_parts("abcdefgh", length=len, longest=4) == ["abcd", "efgh"]


def test_a_word_without_end_is_measured_a_bounded_number_of_times_per_character() -> None:
    measured = 0

    def length(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return len(text)

    for halvings in (6, 8):
        measured, size = 0, 64 << halvings
        assert "".join(shorter_parts("a" * size, length=length, longest=64)) == "a" * size
        assert measured == size * (halvings + 1)
