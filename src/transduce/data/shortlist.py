"""Which target tokens a source sentence can need: a few hundred of the vocabulary instead of all of it.

    list(x) = special tokens ∪ common tokens ∪ x's own tokens ∪ the candidates of each token of x

The candidates of a source token are those that it most probably becomes, t(target | source) of IBM model 1 (Brown et
al. 1993), learned from the training pairs: the expectation of how often each source token of a pair accounts for each
target token of it, normalised for each source token, three times over. A source has an empty word beside its own, for
targets that go with no word of it. x's own tokens are there for names and numbers, which are copied; the common ones,
the most frequent of all targets, are in every list and so are nobody's candidates.

A list depends on its sentence alone, so neighbours in a batch change nothing. It is learned from as many pairs as show
each source token often enough, so what it takes grows with the vocabulary more than with the corpus.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transduce.data.token_store import TokenStore
from transduce.text.tokenizer import EOS, PAD

EMPTY_WORD = PAD  # no sentence holds padding, so its number is free
ROUNDS = 3
SEEN_ENOUGH = 100  # pairs with a source token in them, after which others are looked for
LONGEST = 100  # tokens: of longer sentences there is little to learn about words, and they take the square of it
SHARE = 1e-4  # what a target must have of a source token's probability to be its candidate
_PAIRS_AT_ONCE = 2_000

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Shortlist:
    """What was learned of a corpus: the common targets, and each source token's candidates (padded with PAD)."""

    common_C: NDArray[np.int32]
    candidates_VK: NDArray[np.int32]

    def tokens(self, source: Sequence[int], *, also: Sequence[int] = ()) -> list[int]:
        """Return the list of a source sentence in ascending order, all tokens of `also` among them."""
        own = np.unique(np.asarray(source, dtype=np.int64))
        parts = (np.arange(EOS + 1), self.common_C, own, self.candidates_VK[own].ravel(), np.asarray(also, np.int64))
        tokens: list[int] = np.unique(np.concatenate(parts)).tolist()
        return tokens


def learn_shortlist(store: TokenStore, *, size: int) -> Shortlist:
    """Return the `size` most common targets, and at most as many candidates of each source token."""
    blocks = [_Block.of(store, pairs) for pairs in _in_parts(_telling_pairs(store))]
    common_C = _most_common(blocks, store.vocabulary_size, size=size)
    keys = np.zeros(0, dtype=np.int64)
    for block in blocks:
        keys = np.union1d(keys, block.keys(store.vocabulary_size))
    probabilities = np.ones(len(keys))
    for _ in range(ROUNDS):
        probabilities = _accounted(blocks, keys, probabilities, store.vocabulary_size)
    sources, targets = np.divmod(keys, store.vocabulary_size)
    is_wanted = (probabilities >= SHARE) & (sources != EMPTY_WORD) & ~np.isin(targets, [*common_C, *range(EOS + 1)])
    return Shortlist(
        common_C=np.sort(common_C).astype(np.int32),
        candidates_VK=_best_of_each(
            sources[is_wanted], targets[is_wanted], probabilities[is_wanted], store.vocabulary_size, size=size
        ),
    )


@dataclass(frozen=True)
class _Block:
    """Some pairs: their tokens end to end, and how many each has."""

    sources: Ids
    source_lengths: Ids
    targets: Ids
    target_lengths: Ids

    @classmethod
    def of(cls, store: TokenStore, pairs: Sequence[int]) -> "_Block":
        sources = [np.append(EMPTY_WORD, store.source(pair)[:-1]) for pair in pairs]
        targets = [store.target(pair)[:-1] for pair in pairs]
        return cls(*_end_to_end(sources), *_end_to_end(targets))

    def keys(self, vocabulary_size: int) -> Ids:
        """Return source * V + target of every two tokens of a pair, all those of one target token side by side."""
        widths = self.widths()
        first_sources = np.repeat(np.cumsum(self.source_lengths) - self.source_lengths, self.target_lengths)
        places = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
        sources = self.sources[np.repeat(first_sources, widths) + places]
        keys: Ids = sources * vocabulary_size + np.repeat(self.targets, widths)
        return keys

    def widths(self) -> Ids:
        """Return how many sources each target token has."""
        widths: Ids = np.repeat(self.source_lengths, self.target_lengths)
        return widths


def _accounted(
    blocks: Iterable[_Block], keys: Ids, probabilities: NDArray[np.float64], vocabulary_size: int
) -> NDArray[np.float64]:
    """Return t(target | source) anew: one round of expectation and maximisation."""
    expected = np.zeros(len(keys))
    for block in blocks:
        places, widths = np.searchsorted(keys, block.keys(vocabulary_size)), block.widths()
        if not len(places):
            continue
        shares = probabilities[places]
        totals = np.add.reduceat(shares, np.cumsum(widths) - widths)
        np.divide(shares, np.repeat(totals, widths), out=shares)
        expected += np.bincount(places, weights=shares, minlength=len(keys))
    of_sources = np.bincount(keys // vocabulary_size, weights=expected, minlength=vocabulary_size)
    anew: NDArray[np.float64] = expected / np.maximum(of_sources, 1e-300)[keys // vocabulary_size]
    return anew


def _telling_pairs(store: TokenStore) -> Iterator[int]:
    """Yield the pairs, in their order, that hold a source token of which not enough was seen before."""
    seen = np.zeros(store.vocabulary_size, dtype=np.int64)
    for pair in np.flatnonzero((store.source_lengths <= LONGEST) & (store.target_lengths <= LONGEST)).tolist():
        tokens = store.source(pair)[:-1]
        if len(tokens) and int(seen[tokens].min()) < SEEN_ENOUGH:
            seen[np.unique(tokens)] += 1
            yield pair


def _in_parts(pairs: Iterator[int]) -> Iterator[list[int]]:
    part: list[int] = []
    for pair in pairs:
        part.append(pair)
        if len(part) == _PAIRS_AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _end_to_end(rows: Sequence[NDArray[np.integer]]) -> tuple[Ids, Ids]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.concatenate(rows).astype(np.int64), lengths


def _most_common(blocks: Iterable[_Block], vocabulary_size: int, *, size: int) -> Ids:
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for block in blocks:
        counts += np.bincount(block.targets, minlength=vocabulary_size)
    counts[: EOS + 1] = 0
    best: Ids = np.argsort(-counts, kind="stable")[:size]
    return best[counts[best] > 0]


def _best_of_each(
    sources: Ids, targets: Ids, probabilities: NDArray[np.float64], vocabulary_size: int, *, size: int
) -> NDArray[np.int32]:
    """Return the most probable targets of each source, at most `size`, equals by the lower token."""
    order = np.lexsort((targets, -probabilities, sources))
    sources, targets = sources[order], targets[order]
    counts = np.bincount(sources, minlength=vocabulary_size)
    ranks = np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts)
    candidates_VK = np.full((vocabulary_size, size), PAD, dtype=np.int32)
    is_kept = ranks < size
    candidates_VK[sources[is_kept], ranks[is_kept]] = targets[is_kept]
    return candidates_VK
