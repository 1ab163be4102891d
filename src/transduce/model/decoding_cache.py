"""Keys and values already computed, so that decoding one token more costs one token, not the whole sentence.

Rows are sentence-major: beam w of sentence b is row b * W + w. What comes from the source (the keys and values of
the attention over the encoder's output) is held once per sentence and shared by its beams.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class LayerCache:
    """One decoder layer's keys and values; R = B * W rows, K = capacity, of which `length` are filled."""

    self_keys_RHKE: Tensor
    self_values_RHKG: Tensor
    cross_keys_BHSE: Tensor
    cross_values_BHSG: Tensor
    length: int = 0

    def append(self, key_RH1E: Tensor, value_RH1G: Tensor) -> tuple[Tensor, Tensor]:
        """Store one more position and return all keys and values up to it."""
        if self.length == self.self_keys_RHKE.size(2):
            self.self_keys_RHKE = _with_double_room(self.self_keys_RHKE)
            self.self_values_RHKG = _with_double_room(self.self_values_RHKG)
        self.self_keys_RHKE[:, :, self.length] = key_RH1E[:, :, 0]
        self.self_values_RHKG[:, :, self.length] = value_RH1G[:, :, 0]
        self.length += 1
        return self.self_keys_RHKE[:, :, : self.length], self.self_values_RHKG[:, :, : self.length]


@dataclass
class DecodingCache:
    """What the decoder remembers of B sentences with W beams each."""

    layers: list[LayerCache]
    source_visible_BS: Tensor
    beams: int

    @property
    def length(self) -> int:
        """How many target positions have been decoded."""
        return self.layers[0].length

    def select(self, sentences: Tensor, beams_BW: Tensor) -> None:
        """Keep the named sentences, in that order, and for each the named ones of its beams.

        `sentences` has shape (B',), `beams_BW` shape (B', W'): beam w of new sentence b continues the old beam
        `beams_BW[b, w]` of old sentence `sentences[b]`.
        """
        rows_R = (sentences[:, None] * self.beams + beams_BW).flatten()
        rows_change = not torch.equal(rows_R, torch.arange(self.layers[0].self_keys_RHKE.size(0), device=rows_R.device))
        sentences_change = sentences.numel() != self.source_visible_BS.size(0) or not torch.equal(
            sentences, torch.arange(sentences.numel(), device=sentences.device)
        )
        for layer in self.layers:
            if rows_change:
                layer.self_keys_RHKE = _rows(layer.self_keys_RHKE, rows_R, filled=layer.length)
                layer.self_values_RHKG = _rows(layer.self_values_RHKG, rows_R, filled=layer.length)
            if sentences_change:
                layer.cross_keys_BHSE = layer.cross_keys_BHSE.index_select(0, sentences)
                layer.cross_values_BHSG = layer.cross_values_BHSG.index_select(0, sentences)
        if sentences_change:
            self.source_visible_BS = self.source_visible_BS.index_select(0, sentences)
        self.beams = beams_BW.size(1)


def _rows(states_RHKE: Tensor, rows_R: Tensor, *, filled: int) -> Tensor:
    chosen = states_RHKE.new_empty(rows_R.numel(), *states_RHKE.shape[1:])
    chosen[:, :, :filled] = states_RHKE[:, :, :filled].index_select(0, rows_R)
    return chosen


def _with_double_room(states_RHKE: Tensor) -> Tensor:
    return torch.cat([states_RHKE, torch.empty_like(states_RHKE)], dim=2)
