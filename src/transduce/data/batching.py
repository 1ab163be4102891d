"""Which sentences make a step: similar lengths, a budget of tokens, section 5.1 of "Attention Is All You Need".

    rows × max(longest source, longest target) ≤ tokens per step

The paper batches pairs "by approximate sequence length", about 25,000 source and 25,000 target tokens a step. The
budget here counts what the hardware computes: padded tokens of the larger side, as the authors' code did.

An epoch is planned as a whole and depends on (seed, epoch) alone. All pairs are sorted by the longer of their two
sides, ties at random. The order is then cut into steps, and the steps are shuffled. Three things change which pairs
share a step from epoch to epoch: ties are random, one pair in four is sorted as if it were one token longer, and the
first step is cut short by a random share, which moves every later cut.

Breaking ties by the other side's length would pad 3.5 % less, but then a step holds pairs of one length ratio and
learning is slower at first. Sorting inside windows of 32 steps, or adding up to 3 tokens of noise to each length, also
learned more slowly (docs/decisions/0012).

A step is planned globally, then dealt to ranks and micro-batches: its set of sentences depends on neither.

Departure: the authors put a sentence into a fixed bucket of lengths; sorting pads less than buckets do.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLAN_VERSION = 2
"""Which rule plans epochs; checkpoints record it. Version 1 broke ties of length by the other side's length."""

Sentences = NDArray[np.int64]
"""Indices of sentences in a token store."""


@dataclass(frozen=True)
class Padding:
    """How much of what a set of batches computes is padding, both sides counted."""

    tokens: int
    computed: int

    @property
    def share(self) -> float:
        """Return the share of positions that hold no token, from 0 to 1."""
        return 1 - self.tokens / self.computed if self.computed else 0.0


class BatchPlan:
    """The steps of every epoch over one set of sentences."""

    def __init__(
        self, source_lengths: NDArray[Any], target_lengths: NDArray[Any], *, tokens_per_step: int, seed: int
    ) -> None:
        assert len(source_lengths) == len(target_lengths), "a pair has two sides"
        assert tokens_per_step > 0, "a step holds tokens"
        self.source_lengths = np.asarray(source_lengths, dtype=np.int64)
        self.target_lengths = np.asarray(target_lengths, dtype=np.int64)
        self.tokens_per_step = tokens_per_step
        self.seed = seed
        self._longer = np.maximum(self.source_lengths, self.target_lengths)

    def epoch(self, epoch: int) -> list[Sentences]:
        """Return the steps of an epoch in the order in which they are taken, each a set of sentences.

        Every sentence is in exactly one step. One longer than the whole budget makes a step of its own.
        """
        noise = _Noise(self.seed, epoch)
        sentences = self._sorted_by_length(np.arange(len(self._longer)), noise)
        first_budget = self.tokens_per_step // 2 + int(noise.draw(1)[0] % np.uint64(self.tokens_per_step // 2 + 1))
        steps = self._cut(sentences, self.tokens_per_step, first_budget=first_budget)
        order = np.argsort(noise.draw(len(steps)), kind="stable")
        return [steps[place] for place in order]

    def deal(
        self, step: Sentences, *, rank: int = 0, ranks: int = 1, micro_batch_tokens: int | None = None
    ) -> list[Sentences]:
        """Return the micro-batches of one rank's share of a step; none if the step has fewer sentences than ranks.

        The step is sorted by length and dealt like cards, so that the ranks' shares take equally long.
        """
        assert 0 <= rank < ranks, "a rank is one of the ranks"
        share = self._sorted_by_length(step, None)[rank::ranks]
        if micro_batch_tokens is None:
            return [share] if len(share) else []
        return self._cut(share, micro_batch_tokens, first_budget=micro_batch_tokens)

    def largest(self, batches: list[Sentences]) -> Sentences:
        """Return the batch that needs most memory: the most padded tokens of its larger side, then the longest."""
        return max(
            batches, key=lambda batch: (len(batch) * int(self._longer[batch].max()), int(self._longer[batch].max()))
        )

    def padding(self, batches: list[Sentences]) -> Padding:
        """Return how much of what these batches compute is padding."""
        tokens = computed = 0
        for batch in batches:
            source, target = self.source_lengths[batch], self.target_lengths[batch]
            tokens += int(source.sum() + target.sum())
            computed += len(batch) * int(source.max() + target.max())
        return Padding(tokens, computed)

    def _sorted_by_length(self, sentences: Sentences, noise: "_Noise | None") -> Sentences:
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
            # The longest only grows, so no more rows than this can fit: one search in a short window per step.
            window = np.maximum.accumulate(longer[start : start + max(1, limit // int(longer[start]))])
            fitting = np.searchsorted(window * np.arange(1, len(window) + 1), limit, side="right")
            rows = max(1, int(fitting))
            pieces.append(sentences[start : start + rows])
            start, limit = start + rows, budget
        return pieces


class _Noise:
    """Random 64-bit words that depend on the seeds alone.

    NumPy promises the raw words of a bit generator for ever and on every platform, but not what `Generator` makes
    of them; so shuffling is sorting by raw words.
    """

    def __init__(self, *seeds: int) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence(seeds))

    def draw(self, count: int) -> NDArray[np.uint64]:
        return np.asarray(self._words.random_raw(count), dtype=np.uint64)
