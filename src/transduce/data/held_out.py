"""Which pairs are held out of the training text for validation and test.

A seeded hash of the source decides, so that a corpus that grows keeps most of what it held out. Pairs that share a
source or a target belong together, and so do pairs linked through others: a group stays on one side whole, else a
sentence of the test would stand in the training text with the same source or the same translation. Groups are taken in
the order of their smallest seeded hash until enough pairs are held out.

A large group ("Yes." and all its translations, and all that those translate) stays with the training text, for it
alone could fill the test. Only hashes are held in memory, about 100 bytes a pair at the peak.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from transduce.data.config import DataConfig
from transduce.data.sentence_hashes import Hashes

LARGEST_SHARE = 20
"""A group may make up one part in this many of what is held out."""
_MOST = 2000


class Part(IntEnum):
    """Where a pair goes."""

    TRAIN = 0
    VALID = 1
    TEST = 2


def held_out_sizes(config: DataConfig, pairs: int) -> tuple[int, int]:
    """Return how many of so many pairs are wanted for validation and for test."""
    usual = min(_MOST, max(1, pairs * 2 // 100))
    valid = usual if config.held_out_valid is None else config.held_out_valid
    test = (0 if config.valid else valid) if config.held_out_test is None else config.held_out_test
    return 0 if config.valid else valid, 0 if config.test else test


def hold_out(sources: Hashes, targets: Hashes, *, valid: int, test: int, seed: int) -> NDArray[np.int8]:
    """Return the part of every pair: about `valid` and `test` of them are held out, fewer where groups forbid it."""
    parts = np.full(len(sources), Part.TRAIN, dtype=np.int8)
    if valid + test == 0 or len(sources) == 0:
        return parts
    groups = linked_groups(sources, targets)
    names, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    smallest = np.full(len(names), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(smallest, members, _seeded(sources, seed))
    order = np.argsort(smallest, kind="stable")
    part_of_group = np.full(len(names), Part.TRAIN, dtype=np.int8)
    for part, wanted in ((Part.VALID, valid), (Part.TEST, test)):
        free = order[part_of_group[order] == Part.TRAIN]
        part_of_group[_take(free, sizes, wanted)] = part
    return np.asarray(part_of_group[members])


def linked_groups(sources: Hashes, targets: Hashes) -> NDArray[np.int64]:
    """Return a number for every pair, equal for two pairs exactly if shared sources and targets link them.

    All pairs take the smallest number among those with their source, then with their target, and every number is
    replaced by the number that its own bearer has; that doubles the reach each round, so few rounds settle any chain.
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
        np.minimum.at(hooked, before, numbers)  # the bearer of a number learns of everyone who shares it
        numbers = np.minimum(numbers, hooked[before])
        numbers = numbers[numbers]
        if np.array_equal(numbers, before):
            return numbers


def are_repeated(sources: Hashes, targets: Hashes) -> NDArray[np.bool_]:
    """Tell for each pair whether one before it has the same source and the same target."""
    order = np.lexsort((targets, sources))
    repeats = (sources[order][1:] == sources[order][:-1]) & (targets[order][1:] == targets[order][:-1])
    repeated = np.zeros(len(sources), dtype=np.bool_)
    repeated[order[1:][repeats]] = True
    return repeated


def _take(groups: NDArray[np.int64], sizes: NDArray[np.int64], wanted: int) -> list[int]:
    """Return the first groups that make up what is wanted, leaving the last free group to the training text."""
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
    """Mix a seed into hashes by SplitMix64's finaliser: every bit of a hash reaches every bit of the result."""
    mixed = hashes ^ np.random.SeedSequence(seed).generate_state(1, np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
