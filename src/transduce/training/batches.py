"""Training batches: planned for each epoch, dealt to ranks and micro-batches, tokenised again under BPE-dropout."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.data.batch import Batch, Resegmentation, collate, require_sampling
from transduce.data.batching import BatchPlan, Sentences
from transduce.data.mixture import Mixture
from transduce.data.token_store import TokenStore
from transduce.errors import ConfigError, DataError
from transduce.networks.network import Network
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.config import TrainingConfig


class TrainingBatches:
    """The batches of every step of every epoch over a training corpus, or over a mixture of corpora.

    `max_length` is the longest sentence, in tokens, that BPE-dropout may produce; the default is twice the longest of
    the corpus. Give it if the model has a limited number of positions. `fits` marks the pairs to train on.
    """

    def __init__(
        self,
        store: TokenStore,
        config: TrainingConfig,
        *,
        tokenizers: TokenizerPair | None = None,
        max_length: int | None = None,
        mixture: Mixture | None = None,
        fits: NDArray[np.bool_] | None = None,
    ) -> None:
        if config.bpe_dropout > 0.0:
            assert tokenizers is not None, "BPE-dropout needs the tokenizers"
            for tokenizer in (tokenizers.source, tokenizers.target):
                if tokenizer.kind != "words":
                    require_sampling(tokenizer)
        self.store, self.config, self.tokenizers, self.mixture = store, config, tokenizers, mixture
        self.padding = (OWN_SPECIAL_TOKENS if tokenizers is None else tokenizers.special).padding
        self.plan = BatchPlan(
            store.source_lengths,
            store.target_lengths,
            tokens_per_step=config.batch_tokens,
            seed=config.seed,
            fits=fits,
        )
        self.max_length = max_length or 2 * int(max(store.source_lengths.max(), store.target_lengths.max()))
        self._planned: tuple[int, list[Sentences]] | None = None

    def steps(self, epoch: int) -> list[Sentences]:
        """Return the steps of an epoch, each as the sentences it trains on; epochs count from 0."""
        if self._planned is None or self._planned[0] != epoch:
            sentences = None if self.mixture is None else self.mixture.epoch(epoch)
            self._planned = (epoch, self.plan.epoch(epoch, sentences))
        return self._planned[1]

    def deal(self, step: Sentences, *, epoch: int, rank: int, ranks: int) -> Iterator[Batch]:
        """Yield the micro-batches of one rank's share of a step; a share may be empty."""
        shares = self.plan.deal(step, rank=rank, ranks=ranks, micro_batch_tokens=self.config.micro_batch_tokens)
        return (self.batch(share, epoch=epoch) for share in shares)

    def batch(self, sentences: Sentences, *, epoch: int) -> Batch:
        """Return these sentences as a batch, tokenised with the epoch's BPE-dropout."""
        return collate(self.store, sentences, padding=self.padding, resegmentation=self._resegmentation(epoch))

    def largest(self, *, epoch: int, ranks: int) -> Batch:
        """Return the largest micro-batch among those of the largest step and of the step with the longest pair.

        It plans an epoch with every pair, because the longest pair of a mixture may come in a later epoch.
        """
        steps = self.plan.epoch(epoch)
        longest = self.plan.longest()
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


def pairs_that_fit(network: Network, store: TokenStore) -> NDArray[np.bool_] | None:
    """Return which pairs have a target that the network can write for their source; None if it can write any.

    It also returns None for a network with a fixed number of positions, which raises an error for a longer sentence.
    """
    if network.longest_sentence is not None or network.longest_target(1) is None:
        return None
    longest = {int(length): network.longest_target(int(length)) for length in np.unique(store.source_lengths)}
    bounds = np.array([longest[int(length)] for length in store.source_lengths])
    fits: NDArray[np.bool_] = store.target_lengths <= bounds
    if not fits.any():
        raise DataError(
            f"None of the {len(fits):,} pairs has a target that this network can write for its source: all are longer "
            "than model.length_factor · tokens of the source + model.length_extra. Raise these."
        )
    return fits


def refuse_sampled_lengths(network: Network, config: TrainingConfig) -> None:
    """Raise ConfigError if BPE-dropout could make a target too long for the network."""
    if config.bpe_dropout > 0.0 and network.longest_sentence is None and network.longest_target(1) is not None:
        raise ConfigError(
            f"training.bpe_dropout = {config.bpe_dropout:g} changes the length of sentences, but a network of kind "
            f'"{network.config.kind}" can write only targets up to a length that follows from the source. Set it to 0.'
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
