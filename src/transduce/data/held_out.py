"""Selection of the pairs that are held out of the training text for validation and test.

A seeded hash of the source decides, so a corpus that grows keeps most of its held-out pairs. Pairs that share a source
or a target (up to case, spaces and punctuation), directly or through other pairs, form a group, and a group is held out
as a whole or not at all. Otherwise the training text could hold a test sentence's source or translation. Groups are
taken in the order of their smallest seeded hash until enough pairs are held out.

A large group ("Yes.", all its translations, and all their sources) stays in the training text, because it could
fill the test text alone. Only hashes are in memory, about 100 bytes a pair at the peak.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from transduce.data.config import DataConfig
from transduce.data.sentence_hashes import Hashes

LARGEST_SHARE = 20
"""A group may hold at most 1 / LARGEST_SHARE of the held-out pairs."""
_MOST = 2000


class SplitPart(IntEnum):
    """The split that a pair belongs to."""

    TRAIN = 0
    VALID = 1
    TEST = 2


def held_out_sizes(config: DataConfig, pairs: int) -> tuple[int, int]:
    """Return how many of `pairs` pairs to hold out for validation and for test."""
    usual = min(_MOST, max(1, pairs * 2 // 100))
    valid = usual if config.held_out_valid is None else config.held_out_valid
    test = (0 if config.valid else valid) if config.held_out_test is None else config.held_out_test
    return 0 if config.valid else valid, 0 if config.test else test


def hold_out(
    sources: Hashes, targets: Hashes, *, valid: int, test: int, seed: int, may_leave: NDArray[np.bool_] | None = None
) -> NDArray[np.int8]:
    """Return the part of every pair, with `valid` and `test` pairs held out, or fewer if no group is small enough.

    A group stays in the training text if `may_leave` is False for one of its pairs.
    """
    parts = np.full(len(sources), SplitPart.TRAIN, dtype=np.int8)
    if valid + test == 0 or len(sources) == 0:
        return parts
    groups = linked_groups(sources, targets)
    names, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    smallest = np.full(len(names), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(smallest, members, _seeded(sources, seed))
    order = np.argsort(smallest, kind="stable")
    part_of_group = np.full(len(names), SplitPart.TRAIN, dtype=np.int8)
    if may_leave is not None:
        stays = np.zeros(len(names), dtype=np.bool_)
        stays[members[~may_leave]] = True
        order = order[~stays[order]]
    for part, wanted in ((SplitPart.VALID, valid), (SplitPart.TEST, test)):
        free = order[part_of_group[order] == SplitPart.TRAIN]
        part_of_group[_take(free, sizes, wanted)] = part
    return np.asarray(part_of_group[members])


def linked_groups(sources: Hashes, targets: Hashes) -> NDArray[np.int64]:
    """Return the group number of every pair: equal for two pairs exactly if shared sources and targets link them.

    Each pair begins with its own index. In each round a pair takes the smallest number of all pairs with its source,
    then with its target, and then the number of the pair at that index (pointer jumping). That
    doubles the distance over which numbers travel, so few rounds suffice for any chain.
    """
    sides = [np.unique(hashes, return_inverse=True)[1] for hashes in (sources, targets)]
    numbers = np.arange(len(sources), dtype=np.int64)
    while True:
        before = numbers
        for side in sides:
            smallest = np.full(int(side.max()) + 1, len(sources), dtype=np.int64)
            np.minimum.at(smallest, side, numbers)
            numbers = smallest[side]
        hooked = before.copy()
        np.minimum.at(hooked, before, numbers)  # give each group's first pair the smallest number found in the group
        numbers = np.minimum(numbers, hooked[before])
        numbers = numbers[numbers]
        if np.array_equal(numbers, before):
            return numbers


def are_repeated(sources: Hashes, targets: Hashes) -> NDArray[np.bool_]:
    """Return for each pair whether an earlier pair has the same source and the same target."""
    order = np.lexsort((targets, sources))
    repeats = (sources[order][1:] == sources[order][:-1]) & (targets[order][1:] == targets[order][:-1])
    repeated = np.zeros(len(sources), dtype=np.bool_)
    repeated[order[1:][repeats]] = True
    return repeated


def _take(groups: NDArray[np.int64], sizes: NDArray[np.int64], wanted: int) -> list[int]:
    """Return the first groups that fit into `wanted` pairs, or the smallest if none fits; one group is always left."""
    taken: list[int] = []
    largest = max(1, wanted // LARGEST_SHARE)
    left = wanted
    for group in groups[: len(groups) - 1].tolist():
        if left == 0:
            break
        if sizes[group] <= min(largest, left):
            taken.append(group)
            left -= int(sizes[group])
    if not taken and wanted and len(groups) > 1:
        return [min(groups.tolist(), key=lambda group: (sizes[group], group))]
    return taken


def _seeded(hashes: Hashes, seed: int) -> Hashes:
    """Mix a seed into hashes by SplitMix64's finaliser: every bit of a hash affects every bit of the result."""
    mixed = hashes ^ np.random.SeedSequence(seed).generate_state(1, np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
