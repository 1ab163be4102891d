"""Alignment and entropy, against values worked out by hand."""

import math

import numpy as np
import pytest

from transduce.inspection.alignment import align, mean_entropy


def test_words_sum_what_they_get_and_average_what_they_give() -> None:
    # Three layers: the last but one counts. Its two heads average to the rows below.
    row_a, row_b, row_end = [0.5, 0.25, 0.0, 0.25], [0.0, 0.25, 0.5, 0.25], [0.0, 0.0, 0.0, 1.0]
    mean_TS = np.array([row_a, row_b, row_end], dtype=np.float32)
    spread_TS = np.array([[0.1, -0.1, 0.0, 0.0]] * 3, dtype=np.float32)
    cross_LHTS = np.full((3, 2, 3, 4), 0.25, dtype=np.float32)
    cross_LHTS[1, 0], cross_LHTS[1, 1] = mean_TS + spread_TS, mean_TS - spread_TS
    # Source: word 0 has two pieces, word 1 one, then EOS. Target: one word of two pieces, then EOS.
    alignment = align(cross_LHTS, block="cross", source_words=[0, 0, 1, None], target_words=[0, 0, None])
    assert alignment.layer == 1
    assert alignment.soft[0] == pytest.approx([0.5, 0.25])
    assert alignment.hard == [0]


@pytest.mark.parametrize(("depth", "layer"), [(1, 0), (2, 1), (3, 1), (6, 4)])
def test_the_last_layer_but_one_counts_unless_there_are_few(depth: int, layer: int) -> None:
    cross_LHTS = np.zeros((depth, 1, 1, 2), dtype=np.float32)
    cross_LHTS[:, 0, 0, 0] = 1.0
    cross_LHTS[layer, 0, 0] = np.array([0.0, 1.0])
    alignment = align(cross_LHTS, block="cross", source_words=[0, 1], target_words=[0])
    assert (alignment.layer, alignment.hard) == (layer, [1])


def test_one_layer_is_enough_and_an_empty_source_aligns_with_nothing() -> None:
    cross_LHTS = np.ones((1, 2, 2, 1), dtype=np.float32)
    alignment = align(cross_LHTS, block="cross", source_words=[None], target_words=[0, None])
    assert (alignment.layer, alignment.soft, alignment.hard) == (0, [[]], [None])
    assert align(cross_LHTS, block="cross", source_words=[0], target_words=[None, None]).hard == []


def test_entropy_is_that_of_the_rows_in_bits() -> None:
    rows = [[[0.5, 0.5, 0.0, 0.0], [0.25] * 4], [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]]
    weights_LHQK = np.array([rows], dtype=np.float32)
    assert mean_entropy(weights_LHQK).tolist() == [[pytest.approx(1.5), 0.0]]
    uniform = np.full((1, 1, 3, 7), 1 / 7, dtype=np.float32)
    assert mean_entropy(uniform).item() == pytest.approx(math.log2(7))
