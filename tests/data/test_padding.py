"""Laws of padding and of batches by length."""

from hypothesis import given
from hypothesis import strategies as st

from transduce.data.padding import batches_by_length, pad_ids


def test_rows_are_filled_up_at_the_end() -> None:
    assert pad_ids([[1, 2, 3], [], [4]], padding=9).tolist() == [[1, 2, 3], [9, 9, 9], [4, 9, 9]]


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 200))
def test_batches_hold_every_row_once_and_stay_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(batches_by_length(lengths, tokens_at_once=budget))
    order = [row for batch in batches for row in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[row] for row in order] == sorted(lengths, reverse=True)
    for batch, following in zip(batches, [*batches[1:], []], strict=False):
        longest = max(lengths[row] for row in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget
        assert not following or (len(batch) + 1) * longest > budget, "a batch is as large as the budget allows"
