"""The five splits of the demonstration corpus, with the tree of every sentence.

- train: at most 18 words on either side.
- valid, test: sentences of the same kind. A hash of the German sentence decides the split of a pair, for every seed, so
  no two of the three share a sentence, and no English sentence of one has the translation of another.
- test_combinations: each sentence has a verb with an object, or an adjective with a noun, that never meet in training.
- test_long: each sentence is longer on both sides than any sentence of training, because clauses contain clauses.

Every split is a stream of its own: a larger split begins with the smaller one and does not change the others.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from demo_grammar import english, german
from demo_grammar.combinations import combinations, reserved
from demo_grammar.composition import compose, compose_long
from demo_grammar.tree import Sentence

LONGEST = 18  # words on either side of a training pair
_SHARES = 16  # one sentence in 16 is for validation, one for the test


class Example(NamedTuple):
    """A sentence pair and the tree that both sentences express."""

    tree: Sentence
    english: str
    german: str


def examples(split: str, *, seed: int) -> Iterator[Example]:
    """Yield the pairs of a split without end; no English and no German sentence occurs twice."""
    sources: set[str] = set()
    targets: set[str] = set()
    for found in _STREAMS[split](seed):
        if found.english not in sources and found.german not in targets:
            sources.add(found.english)
            targets.add(found.german)
            yield found


def split_of(german_sentence: str) -> str:
    """Return the split of an ordinary sentence with this translation: train, valid or test."""
    share = zlib.crc32(german_sentence.encode()) % _SHARES
    return {0: "valid", 1: "test"}.get(share, "train")


def _ordinary(seed: int, *, split: str) -> Iterator[Example]:
    for found in map(_example, compose(seed, stream=split)):
        if split_of(found.german) == split and _is_short(found) and reserved().isdisjoint(combinations(found.tree)):
            yield found


def _new_combinations(seed: int) -> Iterator[Example]:
    for tree in compose(seed, stream="combinations"):
        if not reserved().isdisjoint(combinations(tree)) and _is_short(found := _example(tree)):
            yield found


def _long(seed: int) -> Iterator[Example]:
    for found in map(_example, compose_long(seed, stream="long")):
        if min(_lengths(found)) > LONGEST and reserved().isdisjoint(combinations(found.tree)):
            yield found


_STREAMS: dict[str, Callable[[int], Iterator[Example]]] = {
    "train": lambda seed: _ordinary(seed, split="train"),
    "valid": lambda seed: _ordinary(seed, split="valid"),
    "test": lambda seed: _ordinary(seed, split="test"),
    "test_combinations": _new_combinations,
    "test_long": _long,
}


def _example(tree: Sentence) -> Example:
    return Example(tree, english.sentence(tree), german.sentence(tree))


def _is_short(found: Example) -> bool:
    return max(_lengths(found)) <= LONGEST


def _lengths(found: Example) -> tuple[int, int]:
    return len(found.english.split()), len(found.german.split())
