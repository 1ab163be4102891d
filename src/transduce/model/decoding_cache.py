"""The decoder's cache: with it, one more token costs a pass over that token, not over the whole sentence.

Rows are sentence-major: beam w of sentence b is row b * W + w. The keys and values of the attention over the
encoder's output are held once per sentence and shared by its beams.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from transduce.networks.past import KeysAndValues, RecurrentState


@dataclass
class LayerCache:
    """One decoder layer's cache of the target positions so far, and its keys and values of the source."""

    past: KeysAndValues | RecurrentState
    cross_keys_BHSE: Tensor
    cross_values_BHSG: Tensor


@dataclass
class DecodingCache:
    """The cache of all decoder layers for B sentences with W beams each."""

    layers: list[LayerCache]
    source_visible_BS: Tensor
    beams: int
    length: int = 0
    """How many target positions have been decoded."""

    def select(self, sentences: Tensor, beams_BW: Tensor) -> Self:
        """Keep the named sentences, in that order, and for each the named ones of its beams (see `Stepwise`)."""
        rows_R = (sentences[:, None] * self.beams + beams_BW).flatten()
        rows = self.source_visible_BS.size(0) * self.beams
        rows_change = not torch.equal(rows_R, torch.arange(rows, device=rows_R.device))
        sentences_change = sentences.numel() != self.source_visible_BS.size(0) or not torch.equal(
            sentences, torch.arange(sentences.numel(), device=sentences.device)
        )
        for layer in self.layers:
            if rows_change:
                layer.past.select(rows_R)
            if sentences_change:
                layer.cross_keys_BHSE = layer.cross_keys_BHSE.index_select(0, sentences)
                layer.cross_values_BHSG = layer.cross_values_BHSG.index_select(0, sentences)
        if sentences_change:
            self.source_visible_BS = self.source_visible_BS.index_select(0, sentences)
        self.beams = beams_BW.size(1)
        return self
