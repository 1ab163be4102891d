"""Shortlists: the few hundred target tokens that a source sentence can need, instead of the whole vocabulary.

    list(x) = special tokens ∪ common tokens ∪ x's own tokens ∪ the candidates of each token of x

The candidates of a source token are the target tokens that it most probably becomes, by t(target | source) of IBM
model 1 (Brown et al. 1993). Each of three rounds computes how often each source token of a training pair is expected to
account for each of its target tokens, and normalises by source token. Each source also has an empty word, which
accounts for targets without a source word. x's own tokens allow names and numbers to be copied; they are left out if
source and target have separate vocabularies. The common tokens are the most frequent targets; they are in every list,
so they are candidates of no token.

A list depends on its sentence alone, so it does not depend on the batch. The lists are learned from enough pairs to see
each source token often, so the cost grows with the vocabulary more than with the corpus.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transduce.data.token_store import TokenStore
from transduce.networks.stepwise import Ids
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

ROUNDS = 3
SEEN_ENOUGH = 100  # pairs with a source token that suffice to learn its candidates
LONGEST = 100  # tokens; longer sentences say little about words, and their cost is quadratic
SHARE = 1e-4  # the least t(target | source) of a candidate
_PAIRS_AT_ONCE = 2_000


@dataclass(frozen=True)
class Shortlist:
    """The common targets of a corpus, and the candidates of each source token, padded."""

    common_C: NDArray[np.int32]
    candidates_VK: NDArray[np.int32]
    special: SpecialTokens
    """The special tokens of the targets."""
    copies_sources: bool
    """Whether a list holds the source's own tokens, which needs one vocabulary for both sides."""

    def tokens(self, source: Sequence[int], *, also: Sequence[int] = ()) -> list[int]:
        """Return the list of a source sentence with the tokens of `also`: special tokens, then the others ascending."""
        own = np.unique(np.asarray(source, dtype=np.int64))
        copied = own if self.copies_sources else own[:0]
        parts = (self.common_C, copied, self.candidates_VK[own].ravel(), np.asarray(also, np.int64))
        others = np.setdiff1d(np.concatenate(parts), self.special.ids)  # ascending
        return [*self.special.ids, *others.tolist()]


def learn_shortlist(
    store: TokenStore,
    *,
    size: int,
    special: SpecialTokens = OWN_SPECIAL_TOKENS,
    has_one_vocabulary: bool = True,
    source_end: bool = True,
) -> Shortlist:
    """Return the `size` most common targets, and at most as many candidates of each source token.

    `source_end` says whether sources end in the end token, `has_one_vocabulary` whether both sides have the same ids.
    """
    corpus, vocabulary_size = _AlignmentPairs(store, special.padding, source_end), store.vocabulary_size
    blocks = [corpus.block(pairs) for pairs in _in_parts(corpus.informative_pairs())]
    common_C = _most_common(blocks, vocabulary_size, size=size, special=special)
    keys = _all_keys(blocks, vocabulary_size)
    probabilities = np.ones(len(keys))
    for _ in range(ROUNDS):
        probabilities = _accounted(blocks, keys, probabilities, vocabulary_size)
    sources, targets = np.divmod(keys, vocabulary_size)
    is_wanted = (probabilities >= SHARE) & (sources != special.padding)
    is_wanted &= ~np.isin(targets, [*common_C, *special.ids])
    candidates_VK = np.full((store.source_vocabulary_size, size), special.padding, dtype=np.int32)
    _fill_best(candidates_VK, sources[is_wanted], targets[is_wanted], probabilities[is_wanted])
    return Shortlist(
        common_C=np.sort(common_C).astype(np.int32),
        candidates_VK=candidates_VK,
        special=special,
        copies_sources=has_one_vocabulary,
    )


@dataclass(frozen=True)
class _Block:
    """Some pairs: their tokens end to end, and the number of tokens of each."""

    sources: Ids
    source_lengths: Ids
    targets: Ids
    target_lengths: Ids

    def keys(self, vocabulary_size: int) -> Ids:
        """Return source * V + target for every source and target token of each pair, grouped by target token."""
        widths = self.widths()
        first_sources = np.repeat(np.cumsum(self.source_lengths) - self.source_lengths, self.target_lengths)
        places = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
        sources = self.sources[np.repeat(first_sources, widths) + places]
        keys: Ids = sources * vocabulary_size + np.repeat(self.targets, widths)
        return keys

    def widths(self) -> Ids:
        """Return the number of source tokens in the pair of each target token."""
        widths: Ids = np.repeat(self.source_lengths, self.target_lengths)
        return widths


def _all_keys(blocks: Iterable[_Block], vocabulary_size: int) -> Ids:
    """Return the different keys of all blocks, ascending."""
    known, waiting, count = np.zeros(0, dtype=np.int64), [np.zeros(0, dtype=np.int64)], 0
    for block in blocks:
        waiting.append(np.unique(block.keys(vocabulary_size)))
        count += len(waiting[-1])
        if count > len(known):  # so that each key is sorted a few times only
            known, waiting, count = np.unique(np.concatenate([known, *waiting])), [], 0
    return np.unique(np.concatenate([known, *waiting]))


def _accounted(
    blocks: Iterable[_Block], keys: Ids, probabilities: NDArray[np.float64], vocabulary_size: int
) -> NDArray[np.float64]:
    """Return t(target | source) after one more round of expectation and maximisation."""
    expected = np.zeros(len(keys))
    for block in blocks:
        widths = block.widths()
        if not len(widths):
            continue
        different, which = np.unique(block.keys(vocabulary_size), return_inverse=True)
        places = np.searchsorted(keys, different)  # a sorted search is many times faster than a random one
        shares = probabilities[places][which]
        totals = np.add.reduceat(shares, np.cumsum(widths) - widths)
        np.divide(shares, np.repeat(totals, widths), out=shares)
        expected[places] += np.bincount(which, weights=shares)
    of_sources = np.bincount(keys // vocabulary_size, weights=expected)
    updated: NDArray[np.float64] = expected / np.maximum(of_sources, 1e-300)[keys // vocabulary_size]
    return updated


@dataclass(frozen=True)
class _AlignmentPairs:
    """The pairs of a store without their end tokens."""

    store: TokenStore
    empty_word: int
    """The id of the empty word: that of padding, which is in no sentence."""
    source_end: bool

    def source(self, pair: int) -> NDArray[np.unsignedinteger]:
        source = self.store.source(pair)
        return source[:-1] if self.source_end else source

    def block(self, pairs: Sequence[int]) -> _Block:
        """Return some pairs, each source with the empty word in front."""
        sources = [np.append(self.empty_word, self.source(pair)) for pair in pairs]
        targets = [self.store.target(pair)[:-1] for pair in pairs]
        return _Block(*_end_to_end(sources), *_end_to_end(targets))

    def informative_pairs(self) -> Iterator[int]:
        """Yield, in order, each pair with a source token that is in fewer than `SEEN_ENOUGH` earlier pairs."""
        store, seen = self.store, np.zeros(self.store.source_vocabulary_size, dtype=np.int64)
        for pair in np.flatnonzero((store.source_lengths <= LONGEST) & (store.target_lengths <= LONGEST)).tolist():
            tokens = self.source(pair)
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


def _most_common(blocks: Iterable[_Block], vocabulary_size: int, *, size: int, special: SpecialTokens) -> Ids:
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for block in blocks:
        counts += np.bincount(block.targets, minlength=vocabulary_size)
    counts[list(special.ids)] = 0
    best: Ids = np.argsort(-counts, kind="stable")[:size]
    return best[counts[best] > 0]


def _fill_best(
    candidates_VK: NDArray[np.int32], sources: Ids, targets: Ids, probabilities: NDArray[np.float64]
) -> None:
    """Write the most probable targets of each source into its row; of equals the lower token comes first."""
    order = np.lexsort((targets, -probabilities, sources))
    sources, targets = sources[order], targets[order]
    counts = np.bincount(sources, minlength=len(candidates_VK))
    ranks = np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_kept = ranks < candidates_VK.shape[1]
    candidates_VK[sources[is_kept], ranks[is_kept]] = targets[is_kept]
