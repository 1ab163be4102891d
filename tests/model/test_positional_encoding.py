"""Section 3.5: sines and cosines of position, in the paper's order and in the authors' code's."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from transduce.errors import DataError
from transduce.model import ModelConfig
from transduce.model.positional_encoding import (
    PositionalEncoding,
    concatenated_positions,
    sinusoidal_halves,
    sinusoidal_positions,
)

# Worked out with a calculator from the two printed formulas, d_model = 8.
BY_HAND: list[list[float]] = [
    [0, 1, 0, 1, 0, 1, 0, 1],
    [0.84147098, 0.54030231, 0.09983342, 0.99500417, 0.00999983, 0.99995000, 0.00100000, 0.99999950],
    [0.90929743, -0.41614684, 0.19866933, 0.98006658, 0.01999867, 0.99980001, 0.00200000, 0.99999800],
    [0.14112001, -0.98999250, 0.29552021, 0.95533649, 0.02999550, 0.99955003, 0.00300000, 0.99999550],
]


def close_to_eight_digits(actual: Tensor, expected: list[float] | list[list[float]]) -> None:
    assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=0.0, atol=6e-9)


def test_four_positions_of_width_8_by_hand() -> None:
    close_to_eight_digits(sinusoidal_positions(4, 8), BY_HAND)


def test_width_512_by_hand() -> None:
    table_TD = sinusoidal_positions(50, 512)
    close_to_eight_digits(
        table_TD[1, [0, 1, 2, 3, 510, 511]],
        [0.84147098, 0.54030231, 0.82185619, 0.56969501, 1.0366329e-4, 0.99999999463],
    )
    close_to_eight_digits(table_TD[49, [0, 1, 256, 257]], [-0.95375265, 0.30059254, 0.47062589, 0.88233286])


def test_the_authors_codes_form_by_hand() -> None:
    expected = [
        [0.84147098, 0.04639922, 0.00215443, 0.0001, 0.54030231, 0.99892298, 0.99999768, 1.0],
        [0.90929743, 0.0926985, 0.00430886, 0.0002, -0.41614684, 0.99569422, 0.99999072, 0.99999998],
    ]
    assert_close(concatenated_positions(3, 8)[1:], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=6e-9)


def test_halves_hold_the_papers_numbers_sines_first() -> None:
    sines_then_cosines = [[*row[0::2], *row[1::2]] for row in BY_HAND]
    close_to_eight_digits(sinusoidal_halves(4, 8), sines_then_cosines)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "concatenated"])
@pytest.mark.parametrize("first", [1, 2])
def test_the_first_position_has_the_number_that_is_given(
    make_config: Callable[..., ModelConfig], kind: str, first: int
) -> None:
    from_0 = PositionalEncoding(make_config(positions=kind))
    numbered = PositionalEncoding(make_config(positions=kind, first_position=first))
    zeros_BTD = torch.zeros(1, 70, 14, dtype=torch.float64)
    assert torch.equal(numbered(zeros_BTD), from_0(zeros_BTD, after=first))
    assert torch.equal(numbered(zeros_BTD[:, :1], after=5), from_0(zeros_BTD[:, :1], after=first + 5))


def test_the_authors_codes_slowest_wave_has_timescale_10000_and_the_papers_less() -> None:
    assert concatenated_positions(2, 512)[1, 255].asin().item() == pytest.approx(1 / 10_000)
    assert sinusoidal_positions(2, 512)[1, 510].asin().item() == pytest.approx(1 / 9_646.6, rel=1e-5)


@given(
    width=st.integers(1, 32).map(lambda pairs: 2 * pairs),
    position=st.integers(0, 500),
    shift=st.integers(0, 500),
)
def test_a_shift_turns_every_pair_by_an_angle_of_its_own(width: int, position: int, shift: int) -> None:
    table_TD = sinusoidal_positions(position + shift + 1, width)
    for pair in range(width // 2):
        angle = shift / 10_000 ** (2 * pair / width)
        turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]).double()
        here, there = (table_TD[p, 2 * pair : 2 * pair + 2] for p in (position, position + shift))
        assert_close(turn @ here, there, rtol=0.0, atol=1e-6)


def test_the_product_of_two_positions_depends_on_their_distance_alone() -> None:
    table_TD = sinusoidal_positions(23, 8)
    assert (table_TD[1] @ table_TD[3]).item() == pytest.approx(2.56371775, abs=1e-8)
    products = table_TD @ table_TD.T
    for distance in range(23):
        diagonal = products.diagonal(distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal))


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "concatenated"])
def test_positions_can_start_anywhere_and_grow_without_end(make_config: Callable[..., ModelConfig], kind: str) -> None:
    positions = PositionalEncoding(make_config(positions=kind))
    whole_BTD = positions(torch.zeros(1, 211, 14, dtype=torch.float64))
    fresh = PositionalEncoding(make_config(positions=kind))
    one_by_one = [fresh(torch.zeros(1, 1, 14, dtype=torch.float64), after=t) for t in range(211)]
    assert torch.equal(whole_BTD, torch.cat(one_by_one, dim=1))


def test_positions_are_added_in_the_precision_of_the_embedding(make_config: Callable[..., ModelConfig]) -> None:
    positions = PositionalEncoding(make_config())
    exact = sinusoidal_positions(7, 14)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        added = positions(torch.zeros(1, 7, 14, dtype=dtype))
        assert torch.equal(added[0], exact.to(dtype))


def test_no_positions_changes_nothing(make_config: Callable[..., ModelConfig]) -> None:
    embedded_BTD = torch.randn(2, 7, 14)
    assert torch.equal(PositionalEncoding(make_config(positions="none"))(embedded_BTD), embedded_BTD)


def test_learned_positions_are_rows_of_a_table_that_learns(make_config: Callable[..., ModelConfig]) -> None:
    positions = PositionalEncoding(make_config(positions="learned", learned_positions=17))
    added_BTD = positions(torch.zeros(2, 5, 14), after=3)
    assert torch.equal(added_BTD, positions.table_TD[3:8].expand(2, 5, 14))
    added_BTD.sum().backward()
    gradient_TD = positions.table_TD.grad
    assert gradient_TD is not None
    assert gradient_TD.sum(dim=1).nonzero().flatten().tolist() == [3, 4, 5, 6, 7]


def test_computed_positions_are_not_part_of_the_state(make_config: Callable[..., ModelConfig]) -> None:
    assert list(PositionalEncoding(make_config()).state_dict()) == []
    assert list(PositionalEncoding(make_config(positions="learned")).state_dict()) == ["table_TD"]


def test_a_table_made_while_translating_serves_training(make_config: Callable[..., ModelConfig]) -> None:
    positions = PositionalEncoding(make_config())
    with torch.inference_mode():
        positions(torch.zeros(1, 7, 14))
    embedded_BTD = torch.zeros(1, 7, 14, requires_grad=True)
    positions(embedded_BTD).square().sum().backward()
    assert embedded_BTD.grad is not None


def test_a_sentence_beyond_the_learned_positions_is_refused_with_what_to_do(
    make_config: Callable[..., ModelConfig],
) -> None:
    positions = PositionalEncoding(make_config(positions="learned", learned_positions=17))
    positions(torch.zeros(1, 17, 14))
    with pytest.raises(DataError) as caught:
        positions(torch.zeros(1, 1, 14), after=17)
    assert "18 tokens is longer than the 17 positions that this model has learned" in str(caught.value)
    assert "Split it, or train with more model.learned_positions." in str(caught.value)
