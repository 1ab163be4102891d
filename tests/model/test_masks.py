"""Section 3.2.3: position i sees positions up to i; no position sees padding."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transduce.model.masks import as_keys, visible_to_the_left, visible_tokens


def test_three_positions_by_hand() -> None:
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
    assert torch.equal(visible_to_the_left(3)[0, 0], expected)


@given(st.integers(1, 40))
def test_a_position_sees_itself_and_those_before_it(length: int) -> None:
    visible = visible_to_the_left(length)
    position = torch.arange(length)
    assert visible.shape == (1, 1, length, length)
    assert torch.equal(visible[0, 0], position[None, :] <= position[:, None])


def test_only_padding_is_invisible() -> None:
    tokens_BS = torch.tensor([[5, 7, 3, 0], [2, 3, 0, 0]])
    assert visible_tokens(tokens_BS).tolist() == [[True, True, True, False], [True, True, False, False]]
    assert visible_tokens(tokens_BS, padding=3).tolist() == [[True, True, False, True], [True, False, True, True]]


def test_padding_is_hidden_as_a_key_from_every_head_and_query() -> None:
    visible_BK = torch.tensor([[True, True, False], [True, False, False]])
    visible_BHQK = as_keys(visible_BK).expand(2, 5, 7, 3)
    for head in range(5):
        for query in range(7):
            assert torch.equal(visible_BHQK[:, head, query], visible_BK)
