"""Batches of sentences of similar length within a token budget, section 5.1 of "Attention Is All You Need".

    rows × max(longest source, longest target) ≤ tokens per step

The paper batches pairs "by approximate sequence length", about 25,000 source and 25,000 target tokens a step. The
budget here counts padded tokens of the larger side, which is what the hardware computes; the authors' code does so too.

The plan of an epoch depends on (seed, epoch) alone. All pairs are sorted by the length of their longer side, ties at
random. The order is then cut into steps, and the steps are shuffled. Three things change which pairs
share a step from epoch to epoch: ties are random, one pair in four is sorted as if it were one token longer, and the
first step is cut short by a random share, which moves every later cut.

Breaking ties by the other side's length would pad 3.5 % less, but then a step holds pairs of one length ratio and
learning is slower at first. Sorting inside windows of 32 steps, or adding up to 3 tokens of noise to each length, also
learned more slowly (docs/decisions/0012).

A step is planned for all ranks together and then dealt to ranks and micro-batches, so the set of its sentences depends
on neither.

Departure: the authors' code has fixed buckets of lengths; sorting needs less padding.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLAN_VERSION = 2
"""The version of the plan; checkpoints record it. Version 1 broke ties of length by the other side's length."""

Sentences = NDArray[np.int64]
"""Indices of sentences in a token store."""


@dataclass(frozen=True)
class Padding:
    """The tokens in a set of batches, and the positions computed for them, on both sides together."""

    tokens: int
    computed: int

    @property
    def share(self) -> float:
        """Return the share of positions that hold no token, from 0 to 1."""
        return 1 - self.tokens / self.computed if self.computed else 0.0


class BatchPlan:
    """The steps of every epoch over one set of sentences."""

    def __init__(
        self,
        source_lengths: NDArray[Any],
        target_lengths: NDArray[Any],
        *,
        tokens_per_step: int,
        seed: int,
        fits: NDArray[np.bool_] | None = None,
    ) -> None:
        """Plan all sentences, or only those that `fits` marks."""
        assert len(source_lengths) == len(target_lengths), "a pair has two sides"
        assert tokens_per_step > 0, "a step holds tokens"
        self.source_lengths = np.asarray(source_lengths, dtype=np.int64)
        self.target_lengths = np.asarray(target_lengths, dtype=np.int64)
        self.tokens_per_step = tokens_per_step
        self.seed = seed
        self._longer = np.maximum(self.source_lengths, self.target_lengths)
        self._fits = fits
        self._sentences = np.arange(len(self._longer)) if fits is None else np.flatnonzero(fits)

    def epoch(self, epoch: int, sentences: Sentences | None = None) -> list[Sentences]:
        """Return the steps of an epoch in order; they hold `sentences`, or each sentence once.

        A sentence longer than the budget is a step of its own.
        """
        noise = Noise(self.seed, epoch)
        if sentences is None:
            sentences = self._sentences
        elif self._fits is not None:
            sentences = sentences[self._fits[sentences]]
        sentences = self._sorted_by_length(sentences, noise)
        first_budget = self.tokens_per_step // 2 + int(noise.draw(1)[0] % np.uint64(self.tokens_per_step // 2 + 1))
        steps = self._cut(sentences, self.tokens_per_step, first_budget=first_budget)
        order = np.argsort(noise.draw(len(steps)), kind="stable")
        return [steps[place] for place in order]

    def deal(
        self, step: Sentences, *, rank: int = 0, ranks: int = 1, micro_batch_tokens: int | None = None
    ) -> list[Sentences]:
        """Return the micro-batches of one rank's share of a step; a step of few sentences may leave a rank none.

        Rank r of n gets every n-th sentence by length, from the r-th on, so that the shares take equally long.
        """
        assert 0 <= rank < ranks, "a rank is one of the ranks"
        share = self._sorted_by_length(step, None)[rank::ranks]
        if micro_batch_tokens is None:
            return [share] if len(share) else []
        return self._cut(share, micro_batch_tokens, first_budget=micro_batch_tokens)

    def longest(self) -> int:
        """Return the sentence with most tokens on both sides together."""
        both = self.source_lengths[self._sentences] + self.target_lengths[self._sentences]
        return int(self._sentences[both.argmax()])

    def largest(self, batches: list[Sentences]) -> Sentences:
        """Return the batch that needs most memory: most padded tokens on its larger side, then longest."""
        return max(
            batches, key=lambda batch: (len(batch) * int(self._longer[batch].max()), int(self._longer[batch].max()))
        )

    def padding(self, batches: list[Sentences]) -> Padding:
        """Return how much of the computation of these batches is padding."""
        tokens = computed = 0
        for batch in batches:
            source, target = self.source_lengths[batch], self.target_lengths[batch]
            tokens += int(source.sum() + target.sum())
            computed += len(batch) * int(source.max() + target.max())
        return Padding(tokens, computed)

    def _sorted_by_length(self, sentences: Sentences, noise: "Noise | None") -> Sentences:
        longer = self._longer[sentences]
        ties = np.arange(len(sentences), dtype=np.uint64)
        if noise is not None:
            longer = longer + (noise.draw(len(sentences)) % np.uint64(4) == 0)
            ties = noise.draw(len(sentences))
        return sentences[np.lexsort((ties, longer))]

    def _cut(self, sentences: Sentences, budget: int, *, first_budget: int) -> list[Sentences]:
        longer = self._longer[sentences]
        pieces = []
        start, limit = 0, first_budget
        while start < len(sentences):
            # The longest sentence of a step is at least as long as its first, so at most this many rows fit.
            window = np.maximum.accumulate(longer[start : start + max(1, limit // int(longer[start]))])
            fitting = np.searchsorted(window * np.arange(1, len(window) + 1), limit, side="right")
            rows = max(1, int(fitting))
            pieces.append(sentences[start : start + rows])
            start, limit = start + rows, budget
        return pieces


class Noise:
    """Random 64-bit words that depend on the seeds alone.

    NumPy guarantees the raw words of a bit generator for all versions and platforms, but not the output of
    `Generator`, so we shuffle by sorting by raw words.
    """

    def __init__(self, *seeds: int) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence(seeds))

    def draw(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words."""
        return np.asarray(self._words.random_raw(count), dtype=np.uint64)
