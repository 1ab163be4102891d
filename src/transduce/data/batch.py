"""A batch: some pairs of a token store, side by side, padded to the longest of each side.

    source_BS   x_1 … x_n EOS PAD …
    target_BT   y_1 … y_m EOS PAD …     the labels; the model shifts them right itself

With BPE-dropout (Provilkov et al., 2020; not in the paper) the text of every pair is segmented anew, differently in
each epoch. The pieces of sentence n in epoch e depend on (seed, e, n) alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.batching import Sentences
from transduce.data.padding import pad_ids
from transduce.data.token_store import TokenStore
from transduce.text.tokenizer import EOS, PAD, Tokenizer

Ids = Sequence[int] | NDArray[Any]
"""The token ids of one side of a pair."""


@dataclass(frozen=True)
class Batch:
    """Token ids of some pairs, int64, and which sentences of the store they are."""

    source_BS: Tensor
    target_BT: Tensor
    sentences: Sentences

    @property
    def source_tokens(self) -> int:
        """Return the number of source tokens, EOS included, padding not."""
        return int((self.source_BS != PAD).sum())

    @property
    def target_tokens(self) -> int:
        """Return the number of labels: what a sum of losses is divided by."""
        return int((self.target_BT != PAD).sum())

    def to(self, device: torch.device) -> "Batch":
        """Return the same batch on a device."""
        return Batch(
            self.source_BS.to(device, non_blocking=True),
            self.target_BT.to(device, non_blocking=True),
            self.sentences,
        )


@dataclass(frozen=True)
class Resegmentation:
    """BPE-dropout for one epoch: how text is segmented anew."""

    tokenizer: Tokenizer
    dropout: float
    seed: int
    epoch: int
    max_length: int
    """A sample longer than this many ids is replaced by the usual segmentation, never cut off. [tokens]"""


def collate(store: TokenStore, sentences: Sentences, *, resegmentation: Resegmentation | None = None) -> Batch:
    """Return the batch of these sentences of the store, in this order."""
    sources: list[Ids] = []
    targets: list[Ids] = []
    for sentence in sentences.tolist():
        source: Ids = store.source(sentence)
        target: Ids = store.target(sentence)
        if resegmentation is not None:
            source_text, target_text = store.text(sentence)
            source = _resegmented(source_text, source, 2 * sentence, resegmentation)
            target = _resegmented(target_text, target, 2 * sentence + 1, resegmentation)
        sources.append(source)
        targets.append(target)
    return Batch(pad_rows(sources), pad_rows(targets), sentences)


def pad_rows(rows: Sequence[Ids]) -> Tensor:
    """Return rows of ids as one int64 tensor, padded at the end to the longest."""
    return torch.from_numpy(pad_ids(rows, padding=PAD))


def _resegmented(text: str, usual: Ids, number: int, how: Resegmentation) -> Ids:
    sampled = [*how.tokenizer.sample(text, dropout=how.dropout, key=(how.seed, how.epoch, number)), EOS]
    return sampled if len(sampled) <= max(how.max_length, len(usual)) else usual
