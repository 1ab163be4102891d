"""Alignment and entropy, against values worked out by hand."""

import math

import pytest
import torch

from transduce.inspection.alignment import align, mean_entropy


def test_words_sum_what_they_get_and_average_what_they_give() -> None:
    # Three layers: the last but one counts. Its two heads average to the rows below.
    row_a, row_b, row_end = [0.5, 0.25, 0.0, 0.25], [0.0, 0.25, 0.5, 0.25], [0.0, 0.0, 0.0, 1.0]
    mean_TS = torch.tensor([row_a, row_b, row_end])
    spread_TS = torch.tensor([[0.1, -0.1, 0.0, 0.0]] * 3)
    cross_LHTS = torch.full((3, 2, 3, 4), 0.25)
    cross_LHTS[1, 0], cross_LHTS[1, 1] = mean_TS + spread_TS, mean_TS - spread_TS
    # Source: word 0 has two pieces, word 1 one, then EOS. Target: one word of two pieces, then EOS.
    alignment = align(cross_LHTS, block="cross", source_words=[0, 0, 1, None], target_words=[0, 0, None])
    assert alignment.layer == 1
    assert alignment.soft[0] == pytest.approx([0.5, 0.25])
    assert alignment.hard == [0]


@pytest.mark.parametrize(("depth", "layer"), [(1, 0), (2, 1), (3, 1), (6, 4)])
def test_the_last_layer_but_one_counts_unless_there_are_few(depth: int, layer: int) -> None:
    cross_LHTS = torch.zeros(depth, 1, 1, 2)
    cross_LHTS[:, 0, 0, 0] = 1.0
    cross_LHTS[layer, 0, 0] = torch.tensor([0.0, 1.0])
    alignment = align(cross_LHTS, block="cross", source_words=[0, 1], target_words=[0])
    assert (alignment.layer, alignment.hard) == (layer, [1])


def test_one_layer_is_enough_and_an_empty_source_aligns_with_nothing() -> None:
    cross_LHTS = torch.ones(1, 2, 2, 1)
    alignment = align(cross_LHTS, block="cross", source_words=[None], target_words=[0, None])
    assert (alignment.layer, alignment.soft, alignment.hard) == (0, [[]], [None])
    assert align(cross_LHTS, block="cross", source_words=[0], target_words=[None, None]).hard == []


def test_entropy_is_that_of_the_rows_in_bits() -> None:
    weights_LHQK = torch.tensor([[[[0.5, 0.5, 0.0, 0.0], [0.25] * 4], [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]]])
    assert mean_entropy(weights_LHQK).tolist() == [[pytest.approx(1.5), 0.0]]
    uniform = torch.full((1, 1, 3, 7), 1 / 7)
    assert float(mean_entropy(uniform)) == pytest.approx(math.log2(7))
