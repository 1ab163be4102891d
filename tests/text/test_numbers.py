"""Numbers in digits: equal across the ways of writing them, and different otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.numbers import missing_numbers, other_writings


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("1,000.5", "1.000,5"),
        ("1,000,000 people", "1 000 000 Menschen"),
        ("at 2:30", "um 2.30 Uhr"),
        ("on August 15, 1999", "am 15. August 1999"),
        ("12,000 and 5", "5 und 12.000"),
        ("08:05", "8.05 Uhr"),
        ("the 3rd of 4", "der 3. von 4"),
        ("no digits", "zwei"),
    ],
)
def test_a_number_may_be_written_in_another_way(source: str, translation: str) -> None:
    assert missing_numbers(source, translation) == ()


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("22.68 degrees", "2286 Grad", ("22.68",)),
        ("1.5", "15", ("1.5",)),
        ("It's 7:50.", "Es ist 7:5 Uhr.", ("7:50",)),
        ("2 of 2", "2", ("2",)),
        ("100 sit-ups", "hundert", ("100",)),
    ],
)
def test_a_number_that_is_lost_is_named_as_the_source_writes_it(
    source: str, translation: str, lost: tuple[str, ...]
) -> None:
    assert missing_numbers(source, translation) == lost


@given(st.lists(st.from_regex(r"[0-9]{1,9}([.,][0-9]{1,3}){0,2}", fullmatch=True), max_size=4))
def test_every_writing_of_every_number_is_that_number(numbers: list[str]) -> None:
    for writings in zip(*([*other_writings(number)] for number in numbers), strict=False):
        assert missing_numbers(" and ".join(numbers[: len(writings)]), " und ".join(reversed(writings))) == ()
