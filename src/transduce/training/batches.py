"""Training batches: planned for each epoch, dealt to ranks and micro-batches, tokenised again under BPE-dropout."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from transduce.data.batch import Batch, Resegmentation, collate, require_sampling
from transduce.data.batching import BatchPlan, Sentences
from transduce.data.token_store import TokenStore
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.config import TrainingConfig


class TrainingBatches:
    """The batches of every step of every epoch over a training corpus.

    `max_length` is the longest sentence, in tokens, that BPE-dropout may produce; the default is twice the longest of
    the corpus. Give it if the model has a limited number of positions.
    """

    def __init__(
        self,
        store: TokenStore,
        config: TrainingConfig,
        *,
        tokenizers: TokenizerPair | None = None,
        max_length: int | None = None,
    ) -> None:
        if config.bpe_dropout > 0.0:
            assert tokenizers is not None, "BPE-dropout needs the tokenizers"
            require_sampling(tokenizers.source)
            require_sampling(tokenizers.target)
        self.store, self.config, self.tokenizers = store, config, tokenizers
        self.padding = (OWN_SPECIAL_TOKENS if tokenizers is None else tokenizers.special).padding
        self.plan = BatchPlan(
            store.source_lengths,
            store.target_lengths,
            tokens_per_step=config.batch_tokens,
            seed=config.seed,
        )
        self.max_length = max_length or 2 * int(max(store.source_lengths.max(), store.target_lengths.max()))
        self._planned: tuple[int, list[Sentences]] | None = None

    def steps(self, epoch: int) -> list[Sentences]:
        """Return the steps of an epoch, each as the sentences it trains on; epochs count from 0."""
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self.plan.epoch(epoch))
        return self._planned[1]

    def deal(self, step: Sentences, *, epoch: int, rank: int, ranks: int) -> Iterator[Batch]:
        """Yield the micro-batches of one rank's share of a step; a share may be empty."""
        shares = self.plan.deal(step, rank=rank, ranks=ranks, micro_batch_tokens=self.config.micro_batch_tokens)
        return (self.batch(share, epoch=epoch) for share in shares)

    def batch(self, sentences: Sentences, *, epoch: int) -> Batch:
        """Return these sentences as a batch, tokenised with the epoch's BPE-dropout."""
        return collate(self.store, sentences, padding=self.padding, resegmentation=self._resegmentation(epoch))

    def largest(self, *, epoch: int, ranks: int) -> Batch:
        """Return the largest micro-batch among those of the largest step and of the step with the longest pair."""
        steps = self.steps(epoch)
        longest = int((self.plan.source_lengths + self.plan.target_lengths).argmax())
        largest = [self.plan.largest(steps), next(step for step in steps if longest in step)]
        limit = self.config.micro_batch_tokens
        shares = [share for step in largest for share in self.plan.deal(step, ranks=ranks, micro_batch_tokens=limit)]
        return self.batch(self.plan.largest(shares), epoch=epoch)

    def _resegmentation(self, epoch: int) -> Resegmentation | None:
        if self.tokenizers is None or self.config.bpe_dropout == 0.0:
            return None
        return Resegmentation(
            self.tokenizers, self.config.bpe_dropout, seed=self.config.seed, epoch=epoch, max_length=self.max_length
        )


def sample_rows(batch: Batch, rows: int) -> Batch:
    """Return `rows` evenly spaced rows of a batch, padded to the width of the whole batch."""
    count = batch.target_BT.size(0)
    keep = torch.arange(min(rows, count)) * count // min(rows, count)
    return replace(
        batch,
        source_BS=batch.source_BS[keep],
        target_BT=batch.target_BT[keep],
        sentences=batch.sentences[keep.numpy()],
    )
