from hypothesis import given
from hypothesis import strategies as st

from transduce.data import portions
from transduce.data.portions import in_portions


@given(st.lists(st.integers(0, 600_000), max_size=30))
def test_portions_hold_everything_in_order_and_stay_small(lengths: list[int]) -> None:
    found = list(in_portions(lengths, lambda length: length))
    assert [length for portion in found for length in portion] == lengths
    assert all(sum(portion[:-1]) < portions._CHARACTERS for portion in found)


def test_portions_of_short_items_hold_thousands() -> None:
    assert [len(portion) for portion in in_portions(range(10_000), lambda number: 1)] == [4096, 4096, 1808]
