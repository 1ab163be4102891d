"""A stack of layers over packed tokens, forward and backward: an encoder, a decoder, or a language model's decoder.

It has no parameters: it reads those of `model/` and adds to their gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from transduce.backpropagation.attention import CrossAttention, Memory, SelfAttention
from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.embedding import Embedder, LastPullback
from transduce.backpropagation.feed_forward import HandwrittenFeedForward
from transduce.backpropagation.packing import Packing, Visibility
from transduce.backpropagation.pullback import Pullback
from transduce.backpropagation.residual import HandwrittenNorm, HandwrittenResidual
from transduce.model.layers import DecoderLayer, EncoderLayer
from transduce.model.transformer import Decoder, Encoder


class HandwrittenLayer:
    """An encoder layer, or a decoder layer, which also attends over a memory."""

    def __init__(self, layer: EncoderLayer | DecoderLayer, *, dtype: torch.dtype) -> None:
        self.attention = SelfAttention(layer.self_attention, dtype=dtype)
        self.feed_forward = HandwrittenFeedForward(layer.feed_forward, dtype=dtype)
        self.attention_frame = HandwrittenResidual(layer.self_attention_residual)
        self.feed_forward_frame = HandwrittenResidual(layer.feed_forward_residual)
        self.linears = [*self.attention.linears, *self.feed_forward.linears]
        if isinstance(layer, DecoderLayer):
            self.cross_attention = CrossAttention(layer.cross_attention, dtype=dtype)
            self.cross_attention_frame = HandwrittenResidual(layer.cross_attention_residual)
            self.linears += self.cross_attention.linears

    def forward(
        self, x_ND: Tensor, side: Packing, *, visibility: Visibility, memory: Memory | None, dropout: KeyedDropout
    ) -> tuple[Tensor, list[Pullback]]:
        """Return the layer's output, shape (N, D), and the pullbacks of its sub-layers."""
        pulls: list[Pullback] = []
        attend = partial(self.attention.forward, side=side, visibility=visibility, dropout=dropout)
        x_ND, pull = self.attention_frame.forward(x_ND, attend, dropout=dropout)
        pulls.append(pull)
        if memory is not None:
            look = partial(self.cross_attention.forward, memory=memory, target=side, dropout=dropout)
            x_ND, pull = self.cross_attention_frame.forward(x_ND, look, dropout=dropout)
            pulls.append(pull)
        transform = partial(self.feed_forward.forward, dropout=dropout)
        x_ND, pull = self.feed_forward_frame.forward(x_ND, transform, dropout=dropout)
        return x_ND, [*pulls, pull]


class HandwrittenStack:
    """Embeddings, layers and, where there is one, the final norm."""

    def __init__(self, stack: Encoder | Decoder, matrix_VD: Tensor, *, scale: float, dtype: torch.dtype) -> None:
        self.embedder = Embedder(matrix_VD, stack.positions, scale=scale, dropout=stack.dropout.p, dtype=dtype)
        self.layers = [HandwrittenLayer(layer, dtype=dtype) for layer in stack.layers]  # type: ignore[arg-type]
        self.final_norm = HandwrittenNorm(stack.final_norm) if isinstance(stack.final_norm, nn.LayerNorm) else None

    def refresh(self) -> None:
        """Read the current weights of the model."""
        for layer in self.layers:
            for linear in layer.linears:
                linear.refresh()

    def forward(
        self,
        tokens_N: Tensor,
        side: Packing,
        *,
        visibility: Visibility,
        memory: Memory | None = None,
        dropout: KeyedDropout,
    ) -> tuple[Tensor, LastPullback]:
        """Return the output for every token, shape (N, D), and the pullback of the whole stack."""
        x_ND, pull_embedding = self.embedder.forward(tokens_N, side, dropout=dropout)
        pulls: list[Pullback] = []
        for layer in self.layers:
            x_ND, pulls_layer = layer.forward(x_ND, side, visibility=visibility, memory=memory, dropout=dropout)
            pulls += pulls_layer
        if self.final_norm is not None:
            x_ND, pull_norm = self.final_norm.forward(x_ND)
            pulls.append(pull_norm)
        return x_ND, _chained(pull_embedding, pulls)


@dataclass(frozen=True)
class ForwardPass:
    """The result of a forward pass: the last stack's output for every label, without padding, and the backward pass."""

    padded_ND: Tensor
    """The output, followed by idle rows."""
    count: int
    backward: Callable[[Tensor], None]
    """Maps the gradient of `padded_ND` (0 in idle rows) or `hidden_ND` to those of all parameters; call it once."""

    @property
    def hidden_ND(self) -> Tensor:
        """The output without idle rows."""
        return self.padded_ND[: self.count]


def _chained(first: LastPullback, later: list[Pullback]) -> LastPullback:
    """Return the pullback of a stack: it calls the last pullback first, and frees each after its call."""

    def pull(gradient_ND: Tensor) -> None:
        while later:
            gradient_ND = later.pop()(gradient_ND)
        first(gradient_ND)

    return pull
