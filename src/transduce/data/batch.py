"""A batch: some pairs of a token store, side by side, padded to the longest of each side.

source_BS   x_1 … x_n EOS PAD …
target_BT   y_1 … y_m EOS PAD …     the labels; the model shifts them right itself
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transduce.data.batching import Sentences
from transduce.data.token_store import TokenStore

PAD = 0


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
            self.source_BS.to(device, non_blocking=True), self.target_BT.to(device, non_blocking=True), self.sentences
        )


def collate(store: TokenStore, sentences: Sentences) -> Batch:
    """Return the batch of these sentences of the store, in this order."""
    sources: list[Sequence[int] | np.ndarray] = []
    targets: list[Sequence[int] | np.ndarray] = []
    for sentence in sentences.tolist():
        source, target = store.source(sentence), store.target(sentence)
        sources.append(source)
        targets.append(target)
    return Batch(pad_rows(sources), pad_rows(targets), sentences)


def pad_rows(rows: Sequence[Sequence[int] | np.ndarray]) -> Tensor:
    """Return rows of ids as one int64 tensor, padded at the end to the longest."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), PAD, dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return torch.from_numpy(padded)
