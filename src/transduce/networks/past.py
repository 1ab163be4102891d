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

    def append(self, key_RHTE: Tensor, value_RHTG: Tensor) -> tuple[Tensor, Tensor]:
        """Store one more position, or several, and return all keys and values up to the last."""
        end = self.length + key_RHTE.size(2)
        if end > self.keys_RHKE.size(2):
            self.keys_RHKE, self.values_RHKG = _with_room(self.keys_RHKE, end), _with_room(self.values_RHKG, end)
        self.keys_RHKE[:, :, self.length : end] = key_RHTE
        self.values_RHKG[:, :, self.length : end] = value_RHTG
        self.length = end
        return self.keys_RHKE[:, :, :end], self.values_RHKG[:, :, :end]

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


def _with_room(states_RHKE: Tensor, length: int) -> Tensor:
    """Return the table with twice its capacity, or more if `length` positions need more."""
    more = max(states_RHKE.size(2), length - states_RHKE.size(2))
    return torch.cat([states_RHKE, states_RHKE.new_empty(*states_RHKE.shape[:2], more, states_RHKE.size(3))], dim=2)
