"""The batches of training: planned by epoch, dealt to ranks and micro-batches, and segmented anew under BPE-dropout.

BPE-dropout (Provilkov et al. 2020) leaves out merges at random, so that the model sees a word in several
segmentations. What is drawn depends on (seed, epoch, sentence) alone.
"""

from collections.abc import Iterator
from typing import Protocol

import torch

from transduce.data.batch import Batch, collate, pad_rows
from transduce.data.batching import BatchPlan, Sentences
from transduce.data.token_store import TokenStore
from transduce.training.config import TrainingConfig

EOS = 3


class Segmenter(Protocol):
    """What BPE-dropout needs of a tokenizer."""

    def sample(self, text: str, *, dropout: float, key: tuple[int, int, int]) -> list[int]:
        """Return a random segmentation of `text` that depends on `key` alone."""


class TrainingBatches:
    """Every step of every epoch over a training corpus."""

    def __init__(self, store: TokenStore, config: TrainingConfig, *, tokenizer: Segmenter | None = None) -> None:
        assert config.bpe_dropout == 0.0 or tokenizer is not None, "BPE-dropout needs the tokenizer"
        self.store, self.config, self.tokenizer = store, config, tokenizer
        self.plan = BatchPlan(
            store.source_lengths, store.target_lengths, tokens_per_step=config.batch_tokens, seed=config.seed
        )
        self._planned: tuple[int, list[Sentences]] | None = None

    def steps(self, epoch: int) -> list[Sentences]:
        """Return the steps of an epoch, counted from 0, each a set of sentences."""
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self.plan.epoch(epoch))
        return self._planned[1]

    def deal(self, step: Sentences, *, epoch: int, rank: int, ranks: int) -> Iterator[Batch]:
        """Yield the micro-batches of one rank's share of a step, which may be none."""
        shares = self.plan.deal(step, rank=rank, ranks=ranks, micro_batch_tokens=self.config.micro_batch_tokens)
        return (self.batch(share, epoch=epoch) for share in shares)

    def batch(self, sentences: Sentences, *, epoch: int) -> Batch:
        """Return these sentences as a batch, segmented as this epoch segments them."""
        if self.tokenizer is None or self.config.bpe_dropout == 0.0:
            return collate(self.store, sentences)
        pairs = [self._sample(sentence, epoch, self.tokenizer) for sentence in sentences.tolist()]
        return Batch(pad_rows([pair[0] for pair in pairs]), pad_rows([pair[1] for pair in pairs]), sentences)

    def largest(self, *, epoch: int, ranks: int) -> Batch:
        """Return the micro-batch of an epoch that needs most memory: of the largest step or of the longest pair."""
        steps = self.steps(epoch)
        longest = int((self.plan.source_lengths + self.plan.target_lengths).argmax())
        candidates = [self.plan.largest(steps), next(step for step in steps if longest in step)]
        limit = self.config.micro_batch_tokens
        shares = [share for step in candidates for share in self.plan.deal(step, ranks=ranks, micro_batch_tokens=limit)]
        return self.batch(self.plan.largest(shares), epoch=epoch)

    def _sample(self, sentence: int, epoch: int, tokenizer: Segmenter) -> tuple[list[int], list[int]]:
        # The two sides of a pair are two sentences to the sampler, so that equal texts are not segmented equally.
        source, target = (
            tokenizer.sample(text, dropout=self.config.bpe_dropout, key=(self.config.seed, epoch, 2 * sentence + side))
            for side, text in enumerate(self.store.text(sentence))
        )
        return [*source, EOS], [*target, EOS]


def part_of(batch: Batch, rows: int) -> Batch:
    """Return the first `rows` sentences of a batch, padded as the whole is."""
    keep = torch.arange(min(rows, batch.target_BT.size(0)))
    return Batch(batch.source_BS[keep], batch.target_BT[keep], batch.sentences[: len(keep)])
