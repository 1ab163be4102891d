"""Matrices that the rivals share: embeddings and output, and maps whose parameter holds several matrices.

V x E matrices embed the source and the target, and a V x O matrix precedes the softmax. `tied` says which of the three
are one. E is the width of an embedding, O that of the output, I and D the inputs and outputs of a map.
"""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.networks.initialization import normal_rows
from transduce.networks.network import MatrixView
from transduce.networks.output import Output
from transduce.rivals.shapes import TIES


class TokenMatrices(nn.Module):
    """The source, target and output matrices, with dropout on the embeddings."""

    def __init__(
        self, rows: int, widths: tuple[int, int], *, tied: str, dropout: float = 0.0, source_rows: int | None = None
    ) -> None:
        """Make matrices of `rows` rows; `widths` are those of an embedding and of the output.

        `source_rows` is given where sources have a vocabulary of their own.
        """
        super().__init__()
        embedding, output = widths
        inputs_are_one, all_are_one = TIES[tied]
        self.source_VE = normal_rows(source_rows or rows, embedding)
        self.target_VE = self.source_VE if inputs_are_one else normal_rows(rows, embedding)
        self.output_VO = self.target_VE if all_are_one else normal_rows(rows, output)
        self.dropout = nn.Dropout(dropout)

    @property
    def output(self) -> Output:
        """The output matrix, without a bias."""
        return Output(self.output_VO)

    def embed_source(self, tokens_BS: Tensor) -> Tensor:
        """Return the embeddings of source tokens, shape (B, S, E)."""
        return self.dropout(functional.embedding(tokens_BS, self.source_VE))  # type: ignore[no-any-return]

    def embed_target(self, tokens_BT: Tensor) -> Tensor:
        """Return the embeddings of target tokens, shape (B, T, E)."""
        return self.dropout(functional.embedding(tokens_BT, self.target_VE))  # type: ignore[no-any-return]


class StackedLinear(nn.Linear):
    """A linear map whose weight holds several matrices, one below the other: the gates of a unit, or a kernel.

    Weights are drawn for each matrix separately, Glorot-uniform unless `draw` says otherwise. The bias is zero.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        blocks: int,
        bias: bool = True,
        draw: Literal["glorot", "orthogonal"] = "glorot",
    ) -> None:
        super().__init__(inputs, blocks * outputs, bias=bias)
        self.blocks = blocks
        if self.weight.is_meta:
            return
        for block in self.weight.data.view(blocks, outputs, inputs):
            {"glorot": nn.init.xavier_uniform_, "orthogonal": nn.init.orthogonal_}[draw](block)
        if bias:
            nn.init.zeros_(self.bias)


def matrix_views(network: nn.Module) -> Iterable[MatrixView]:
    """Return every linear map of a network as matrices, each block of a stacked one by itself."""
    for name, module in network.named_modules():
        if isinstance(module, nn.Linear):
            blocks = module.blocks if isinstance(module, StackedLinear) else 1
            yield MatrixView(f"{name}.weight", (blocks, module.out_features // blocks, module.in_features))


@torch.no_grad()
def draw_uniform(network: nn.Module, *, bound: float) -> None:
    """Draw every parameter, biases too, from the uniform distribution between ±`bound`."""
    for parameter in network.parameters():
        if not parameter.is_meta:
            parameter.uniform_(-bound, bound)
