import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.data.config import DataConfig
from transduce.data.held_out import SplitPart, are_repeated, held_out_sizes, hold_out, linked_groups
from transduce.data.sentence_hashes import Hashes, sentence_hashes

pairs_of_words = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), min_size=1, max_size=60)


def hashes(pairs: list[tuple[int, int]]) -> tuple[Hashes, Hashes]:
    return sentence_hashes(f"s{a}" for a, _ in pairs), sentence_hashes(f"t{b}" for _, b in pairs)


def groups_by_walking(pairs: list[tuple[int, int]]) -> list[set[int]]:
    """Find linked pairs the plain way: walk from each pair to all that share a side with it."""
    groups: list[set[int]] = []
    left = set(range(len(pairs)))
    while left:
        group, border = set(), {min(left)}
        while border:
            group |= border
            border = {
                n for n in left - group if any(pairs[n][0] == pairs[m][0] or pairs[n][1] == pairs[m][1] for m in border)
            }
        left -= group
        groups.append(group)
    return groups


@given(pairs_of_words)
def test_groups_are_what_walking_from_pair_to_pair_finds(pairs: list[tuple[int, int]]) -> None:
    numbers = linked_groups(*hashes(pairs))
    found = [set(np.flatnonzero(numbers == number).tolist()) for number in np.unique(numbers)]
    assert sorted(found, key=min) == sorted(groups_by_walking(pairs), key=min)


def test_a_long_chain_in_any_order_is_one_group_in_no_time() -> None:
    order = np.random.default_rng(0).permutation(100_001).astype(np.uint64)
    start = time.process_time()
    assert len(np.unique(linked_groups(order // 2, (order + 1) // 2))) == 1
    assert time.process_time() - start < 3


@given(pairs_of_words, st.integers(0, 20), st.integers(0, 20), st.integers(0, 9))
def test_no_sentence_and_no_translation_is_on_two_sides(
    pairs: list[tuple[int, int]], valid: int, test: int, seed: int
) -> None:
    parts = hold_out(*hashes(pairs), valid=valid, test=test, seed=seed)
    for side in range(2):
        sentences = [
            {pair[side] for pair, place in zip(pairs, parts, strict=True) if place == part} for part in SplitPart
        ]
        assert not sentences[0] & sentences[1]
        assert not sentences[0] & sentences[2]
        assert not sentences[1] & sentences[2]
    assert (parts == SplitPart.TRAIN).any()


def distinct(count: int, *, first: int = 0) -> tuple[Hashes, Hashes]:
    return hashes([(n, n) for n in range(first, first + count)])


def test_as_many_are_held_out_as_asked() -> None:
    parts = hold_out(*distinct(5000), valid=100, test=37, seed=1)
    assert np.bincount(parts).tolist() == [4863, 100, 37]


def test_the_seed_chooses_and_nothing_else() -> None:
    one, again, other = (hold_out(*distinct(5000), valid=100, test=100, seed=seed) for seed in (1, 1, 2))
    assert (one == again).all()
    both = int(((one == SplitPart.VALID) & (other == SplitPart.VALID)).sum())
    assert both < 15, "two seeds should agree by chance only, on about 2 of 100"


def test_the_order_of_the_file_does_not_matter() -> None:
    sources, targets = distinct(3000)
    order = np.random.default_rng(1).permutation(3000)
    parts = hold_out(sources, targets, valid=60, test=60, seed=1)
    assert (hold_out(sources[order], targets[order], valid=60, test=60, seed=1) == parts[order]).all()


def test_a_corpus_that_grows_keeps_most_of_what_it_held_out() -> None:
    before = hold_out(*distinct(5000), valid=100, test=0, seed=1)
    after = hold_out(*distinct(5500), valid=100, test=0, seed=1)[:5000]
    assert int(((before == SplitPart.VALID) & (after == SplitPart.VALID)).sum()) > 80


def test_a_large_group_stays_in_the_training_text() -> None:
    common = [(n // 20, n) for n in range(500)]  # groups of 20, which could be taken, but only up to 5 may be
    parts = hold_out(*hashes(common + [(n, n) for n in range(500, 700)]), valid=100, test=50, seed=3)
    assert (parts[:500] == SplitPart.TRAIN).all()
    assert np.bincount(parts[500:]).tolist() == [50, 100, 50]


def test_where_every_group_is_large_the_smallest_is_held_out() -> None:
    pairs = [(0, n) for n in range(9)] + [(1, 10 + n) for n in range(4)]
    parts = hold_out(*hashes(pairs), valid=2, test=0, seed=1)
    assert np.flatnonzero(parts == SplitPart.VALID).tolist() == [9, 10, 11, 12]


@pytest.mark.parametrize(
    ("settings", "pairs", "expected"),
    [
        ({}, 1_000_000, (2000, 2000)),
        ({}, 29_000, (580, 580)),
        ({}, 10, (1, 1)),
        ({"valid": "v.tsv"}, 29_000, (0, 0)),
        ({"test": "t.tsv"}, 29_000, (580, 0)),
        ({"held_out_valid": 7}, 29_000, (7, 7)),
        ({"held_out_valid": 0}, 29_000, (0, 0)),
        ({"valid": "v.tsv", "held_out_test": 5}, 29_000, (0, 5)),
        ({"held_out_valid": 7, "held_out_test": 0}, 29_000, (7, 0)),
    ],
)
def test_how_many_are_wanted(settings: dict[str, object], pairs: int, expected: tuple[int, int]) -> None:
    assert held_out_sizes(DataConfig.model_validate(settings), pairs) == expected


@given(pairs_of_words)
def test_a_pair_is_repeated_if_the_same_pair_stood_before_it(pairs: list[tuple[int, int]]) -> None:
    expected = [pair in pairs[:place] for place, pair in enumerate(pairs)]
    assert are_repeated(*hashes(pairs)).tolist() == expected


@pytest.mark.slow
def test_a_million_pairs_are_divided_within_twenty_seconds() -> None:
    random = np.random.default_rng(0)
    pairs = list(zip(random.integers(0, 700_000, 1_000_000).tolist(), range(1_000_000), strict=True))
    sides = hashes(pairs)
    start = time.process_time()
    parts = hold_out(*sides, valid=2000, test=2000, seed=1)
    assert np.bincount(parts)[1:].tolist() == [2000, 2000]
    assert time.process_time() - start < 20
