"""The corpus: sentence pairs in five splits that share no sentence.

- train: what a model learns from; at most 18 words on either side.
- valid, test: the same kind of sentences, held out by a hash of the German one, so that whatever the seed no sentence
  is in both, nor another English one with the same translation.
- test_combinations: each has a verb with an object, or an adjective with a noun, that never meet in training.
- test_long: each is longer on both sides than any sentence of training, by clauses nested in clauses.

Every split is a stream of its own: asking for more of one appends to it and leaves the others as they were.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from transduce.demo import english, german
from transduce.demo.combinations import combinations, reserved
from transduce.demo.composition import compose, compose_long
from transduce.demo.tree import Sentence
from transduce.files import write_atomically

LONGEST = 18
_SHARES = 16  # of 16 sentences one is held out for validation and one for the test

Pair = tuple[str, str]


class Corpus(NamedTuple):
    """English-German sentence pairs by split."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    test_combinations: list[Pair]
    test_long: list[Pair]


def corpus(*, pairs: int, seed: int = 1, held_out: int = 500) -> Corpus:
    """Return `pairs` sentence pairs to train on and `held_out` in each other split, without repetition."""
    return Corpus(
        train=_take(_training(seed), pairs),
        valid=_take(_held_out(seed, split="valid"), held_out),
        test=_take(_held_out(seed, split="test"), held_out),
        test_combinations=_take(_new_combinations(seed), held_out),
        test_long=_take(_long(seed), held_out),
    )


def write_corpus(folder: Path, *, pairs: int, seed: int = 1, held_out: int = 500) -> None:
    """Write each split as `<split>.tsv` into `folder`: source, tab, target; UTF-8, lines ended by a newline."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, found in corpus(pairs=pairs, seed=seed, held_out=held_out)._asdict().items():
        text = "".join(f"{source}\t{target}\n" for source, target in found)
        write_atomically(folder / f"{split}.tsv", text)


def home(target: str) -> str:
    """Return the split in which an ordinary sentence with this translation lives: train, valid or test."""
    share = zlib.crc32(target.encode()) % _SHARES
    return {0: "valid", 1: "test"}.get(share, "train")


def _take(found: Iterator[Pair], count: int) -> list[Pair]:
    """Return the first pairs of a stream, those left out whose English or German has occurred before."""
    taken: dict[str, str] = {}
    targets: set[str] = set()
    while len(taken) < count:
        source, target = next(found)
        if source not in taken and target not in targets:
            taken[source] = target
            targets.add(target)
    return list(taken.items())


def _training(seed: int) -> Iterator[Pair]:
    for tree, pair in _pairs(compose(seed, stream="train")):
        if _length(pair) <= LONGEST and home(pair[1]) == "train" and reserved().isdisjoint(combinations(tree)):
            yield pair


def _held_out(seed: int, *, split: str) -> Iterator[Pair]:
    for tree, pair in _pairs(compose(seed, stream=split)):
        if home(pair[1]) == split and _length(pair) <= LONGEST and reserved().isdisjoint(combinations(tree)):
            yield pair


def _new_combinations(seed: int) -> Iterator[Pair]:
    for tree in compose(seed, stream="combinations"):
        if not reserved().isdisjoint(combinations(tree)):
            pair = english.sentence(tree), german.sentence(tree)
            if _length(pair) <= LONGEST:
                yield pair


def _long(seed: int) -> Iterator[Pair]:
    for tree, pair in _pairs(compose_long(seed, stream="long")):
        if min(len(side.split()) for side in pair) > LONGEST and reserved().isdisjoint(combinations(tree)):
            yield pair


def _pairs(trees: Iterator[Sentence]) -> Iterator[tuple[Sentence, Pair]]:
    for tree in trees:
        yield tree, (english.sentence(tree), german.sentence(tree))


def _length(pair: Pair) -> int:
    return max(len(side.split()) for side in pair)
