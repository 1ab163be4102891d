"""Convolutions along positions: windows of neighbouring inputs, and maps of them.

    (W * x)_t = Σ_j W_j x_(t + offset_j)

A kernel of width k with dilation s takes inputs s apart. A causal one takes t and positions before it; a centred one as
many before as after it. Inputs beyond either end are zeros. Decoding keeps the last (k - 1) s inputs, so that a step
costs the same at every position.

Shapes: D is the width of inputs, K the width of the kernel, P = (K - 1) s the inputs kept.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from transduce.rivals.matrices import StackedLinear

Side = Literal["causal", "centred"]


def windows(inputs_BTD: Tensor, *, kernel: int, dilation: int = 1, side: Side) -> Tensor:
    """Return the inputs that each position of a convolution takes, in order, shape (B, T, K, D)."""
    reach, length = (kernel - 1) * dilation, inputs_BTD.size(1)
    before = reach if side == "causal" else reach // 2
    padded_BTD = functional.pad(inputs_BTD, (0, 0, before, reach - before))
    return torch.stack([padded_BTD[:, tap * dilation :][:, :length] for tap in range(kernel)], dim=2)


def empty_past(like_BTD: Tensor, width: int, *, kernel: int, dilation: int = 1) -> Tensor:
    """Return the inputs before the first position of one beam per sentence: zeros, shape (B, 1, P, D)."""
    return like_BTD.new_zeros(like_BTD.size(0), 1, (kernel - 1) * dilation, width)


def next_window(past_BWPD: Tensor, inputs_BWD: Tensor, *, dilation: int = 1) -> tuple[Tensor, Tensor]:
    """Return the window of one more position of each beam, shape (B, W, K, D), and the inputs to keep."""
    extended = torch.cat([past_BWPD, inputs_BWD[:, :, None]], dim=2)
    return extended[:, :, ::dilation], extended[:, :, 1:]


class Convolution(StackedLinear):
    """A kernel with a matrix for each of its positions, so that Muon updates each separately."""

    def __init__(self, inputs: int, outputs: int, *, kernel: int) -> None:
        super().__init__(inputs, outputs, blocks=kernel, bias=False)
        self.bias_D = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, windows_BTKD: Tensor) -> Tensor:
        """Return the sum over the positions of each window, shape (B, T, outputs)."""
        joined = self.weight.view(self.blocks, -1, self.in_features).transpose(0, 1).flatten(start_dim=1)
        return functional.linear(windows_BTKD.flatten(start_dim=2), joined, self.bias_D)
