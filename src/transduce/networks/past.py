"""The cache of one decoder layer for the target positions so far: keys and values, or one recurrent state.

Rows are sentence-major: beam w of sentence b is row b * W + w, and R = B * W. K is the capacity of a table.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class KeysAndValues:
    """The cache of self-attention: tables of keys and values, in which `length` positions are filled."""

    keys_RHKE: Tensor
    values_RHKG: Tensor
    length: int = 0

    def append(self, key_RH1E: Tensor, value_RH1G: Tensor) -> tuple[Tensor, Tensor]:
        """Store one more position and return all keys and values up to it."""
        if self.length == self.keys_RHKE.size(2):
            self.keys_RHKE, self.values_RHKG = _with_double_room(self.keys_RHKE), _with_double_room(self.values_RHKG)
        self.keys_RHKE[:, :, self.length] = key_RH1E[:, :, 0]
        self.values_RHKG[:, :, self.length] = value_RH1G[:, :, 0]
        self.length += 1
        return self.keys_RHKE[:, :, : self.length], self.values_RHKG[:, :, : self.length]

    def select(self, rows_R: Tensor) -> None:
        """Make row r continue row `rows_R[r]`."""
        self.keys_RHKE = _rows(self.keys_RHKE, rows_R, filled=self.length)
        self.values_RHKG = _rows(self.values_RHKG, rows_R, filled=self.length)


@dataclass
class RecurrentState:
    """The cache of a recurrent unit: its state, or None before the first position."""

    state_RD: Tensor | None = None

    def select(self, rows_R: Tensor) -> None:
        """Make row r continue row `rows_R[r]`."""
        self.state_RD = None if self.state_RD is None else self.state_RD.index_select(0, rows_R)


def _rows(states_RHKE: Tensor, rows_R: Tensor, *, filled: int) -> Tensor:
    chosen = states_RHKE.new_empty(rows_R.numel(), *states_RHKE.shape[1:])
    chosen[:, :, :filled] = states_RHKE[:, :, :filled].index_select(0, rows_R)
    return chosen


def _with_double_room(states_RHKE: Tensor) -> Tensor:
    return torch.cat([states_RHKE, torch.empty_like(states_RHKE)], dim=2)
