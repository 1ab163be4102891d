"""Embeddings (3.4) and positions (3.5) of packed tokens, and their gradient.

x = Dropout(√d_model · E[token] + PE[position])        ∂E[token] += √d_model · Dropout(∂x)
"""

from collections.abc import Callable

import torch
from torch import Tensor

from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.packing import Packing
from transduce.model.positional_encoding import PositionalEncoding

LastPullback = Callable[[Tensor], None]
"""A pullback that ends at the token ids and returns nothing, because they have no gradient."""


class Embedder:
    """The token and position embeddings that a stack begins with."""

    def __init__(
        self, matrix_VD: Tensor, positions: PositionalEncoding, *, scale: float, dropout: float, dtype: torch.dtype
    ) -> None:
        self.matrix_VD, self.positions, self.scale, self.dropout = matrix_VD, positions, scale, dropout
        self.dtype = dtype

    @torch.no_grad()
    def forward(self, tokens_N: Tensor, side: Packing, *, dropout: KeyedDropout) -> tuple[Tensor, LastPullback]:
        """Return the inputs of a stack, shape (N, D), and their pullback."""
        table_LD = self.positions(self.matrix_VD.new_zeros(1, int(side.position_N.max()) + 1, self.matrix_VD.size(1)))
        positions_ND = table_LD[0].index_select(0, side.position_N)
        x_ND = positions_ND.add_(self.matrix_VD.index_select(0, tokens_N), alpha=self.scale).to(self.dtype)
        kept = dropout.keep(x_ND, probability=self.dropout)

        def pull(gradient_ND: Tensor) -> None:
            if kept is not None:
                gradient_ND = kept.times(gradient_ND)
            exact_ND = gradient_ND.to(self.matrix_VD.dtype)
            assert self.matrix_VD.grad is not None
            self.matrix_VD.grad.index_add_(0, tokens_N, exact_ND, alpha=self.scale)
            if self.positions.kind == "learned":
                assert self.positions.table_TD.grad is not None
                self.positions.table_TD.grad.index_add_(0, side.position_N, exact_ND)

        return x_ND if kept is None else kept.times(x_ND), pull
