"""Positional encoding, section 3.5 of "Attention Is All You Need".

    PE(pos, 2i)   = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i / d_model))

Departures by name (`ModelConfig.positions`): `sinusoidal_halves`, all PE(pos, 2i) and then all PE(pos, 2i+1);
`concatenated`, the authors' code's form, sines in the first half and cosines in the second over timescales from 1 to
exactly 10000; `learned`, row E of Table 3; `none`. `first_position` is the pos of a sentence's first token.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from transduce.errors import DataError
from transduce.model.config import ModelConfig
from transduce.networks.initialization import normal_rows

LONGEST_TIMESCALE = 10_000.0


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """Return PE for positions 0 … length - 1 as the paper prints it, shape (T, D), float64."""
    position_T1 = torch.arange(length, dtype=torch.float64)[:, None]
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle_TI = position_T1 / LONGEST_TIMESCALE ** (two_i / d_model)
    return torch.stack([angle_TI.sin(), angle_TI.cos()], dim=-1).flatten(start_dim=1)


def sinusoidal_halves(length: int, d_model: int) -> Tensor:
    """Return the paper's PE with all sines before all cosines, shape (T, D), float64."""
    table_TD = sinusoidal_positions(length, d_model)
    return torch.cat([table_TD[:, 0::2], table_TD[:, 1::2]], dim=-1)


def concatenated_positions(length: int, d_model: int) -> Tensor:
    """Return the authors' code's signal: all sines, then all cosines, shape (T, D), float64."""
    position_T1 = torch.arange(length, dtype=torch.float64)[:, None]
    half = d_model // 2
    angle_TI = position_T1 / LONGEST_TIMESCALE ** (torch.arange(half, dtype=torch.float64) / max(half - 1, 1))
    return torch.cat([angle_TI.sin(), angle_TI.cos()], dim=-1)


FORMULAS: Mapping[str, Callable[[int, int], Tensor]] = {
    "sinusoidal": sinusoidal_positions,
    "sinusoidal_halves": sinusoidal_halves,
    "concatenated": concatenated_positions,
    "none": lambda length, d_model: torch.zeros(length, d_model, dtype=torch.float64),
}


def computed_positions(config: ModelConfig, length: int) -> Tensor:
    """Return the vectors of a sentence's first `length` positions by formula, shape (T, D), float64."""
    return FORMULAS[config.positions](config.first_position + length, config.d_model)[config.first_position :]


class PositionalEncoding(nn.Module):
    """Adds to each embedding a vector that depends on its position alone."""

    computed_TD: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config, self.kind = config, config.positions
        assert self.kind == "learned" or self.kind in FORMULAS, f"there are no positions {self.kind!r}"
        if self.kind == "learned":
            self.table_TD = normal_rows(config.learned_positions, config.d_model)
        else:
            self.register_buffer("computed_TD", torch.empty(0, config.d_model), persistent=False)

    def forward(self, embedded_BTD: Tensor, *, after: int = 0) -> Tensor:
        """Return the embeddings of the tokens after the first `after`, positions added, shape (B, T, D)."""
        if self.kind == "none":
            return embedded_BTD
        last = after + embedded_BTD.size(1)
        if self.kind == "learned":
            self._require(last, of=self.table_TD.size(0))
            return embedded_BTD + self.table_TD[after:last]
        return embedded_BTD + self._table(last, like=embedded_BTD)[after:last]

    def at(self, embedded_RTD: Tensor, places_R: Tensor) -> Tensor:
        """Return the embeddings of one token of each row, at a position of its own, shape (R, 1, D)."""
        if self.kind == "none":
            return embedded_RTD
        last = int(places_R.max()) + 1
        table_TD = self.table_TD if self.kind == "learned" else self._table(last, like=embedded_RTD)
        self._require(last, of=table_TD.size(0))
        return embedded_RTD + table_TD[places_R][:, None]

    @staticmethod
    def _require(length: int, *, of: int) -> None:
        if length > of:
            raise DataError(
                f"A sentence of {length} tokens is longer than the {of} positions that this model "
                "has learned. Split it, or train with more model.learned_positions."
            )

    def _table(self, length: int, *, like: Tensor) -> Tensor:
        table_TD = self.computed_TD
        if table_TD.size(0) < length or table_TD.dtype != like.dtype or table_TD.device != like.device:
            longer = max(length, 2 * table_TD.size(0), 64)  # doubling: decoding asks for one more position each step
            table_TD = computed_positions(self.config, longer).to(device=like.device, dtype=like.dtype)
            self.computed_TD = table_TD
        return table_TD
