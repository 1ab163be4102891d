"""Multi-head attention (3.2) and its gradient.

    S = α Q Kᵀ + hidden      A = softmax(S)      O = A V                        α = 1/√d_k
    ∂V = Aᵀ ∂O               ∂A = ∂O Vᵀ          ∂S = A ∘ (∂A - Σ_k A ∘ ∂A)
    ∂Q = α ∂S K              ∂K = α ∂Sᵀ Q

The softmax and its gradient are computed in float32. The backward pass keeps A, in the network's precision, and not S.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from transduce.backpropagation import fused_kernels
from transduce.backpropagation.dropout import DropoutMask, KeyedDropout
from transduce.backpropagation.linear import Linear
from transduce.backpropagation.packing import Packing, Visibility
from transduce.backpropagation.pullback import Pullback
from transduce.model.attention import MultiHeadAttention

HeadsPullback = Callable[[Tensor, Tensor, Tensor, Tensor], None]
"""Takes the gradient of A V, and writes those of queries, keys and values into its other arguments."""


class SelfAttention:
    """Self-attention; one product computes queries, keys and values of the same tokens."""

    def __init__(self, module: MultiHeadAttention, *, dtype: torch.dtype) -> None:
        self.inputs = Linear(module.W_Q, module.W_K, module.W_V, dtype=dtype)
        self.output = Linear(module.W_O, dtype=dtype)
        self.heads = _Heads(module)
        self.linears = (self.inputs, self.output)

    def forward(
        self, x_ND: Tensor, side: Packing, *, visibility: Visibility, dropout: KeyedDropout
    ) -> tuple[Tensor, Pullback]:
        """Return the attention output for each token, shape (N, D), and its pullback."""
        by_head = side.to_heads(self.inputs.forward(x_ND), parts=3)
        mixed, pull_heads = self.heads.attend(
            by_head[0], by_head[1], by_head[2], visibility=visibility, dropout=dropout
        )
        mixed_NA = side.from_heads(mixed[None])

        def pull(gradient_ND: Tensor) -> Tensor:
            gradient = torch.empty_like(by_head)
            mixed_gradient = side.to_heads(self.output.backward(gradient_ND, mixed_NA), parts=1)[0]
            pull_heads(mixed_gradient, gradient[0], gradient[1], gradient[2])
            return self.inputs.backward(side.from_heads(gradient), x_ND)

        return self.output.forward(mixed_NA), pull


class CrossAttention:
    """Cross-attention: queries from the target's tokens, keys and values from the encoder's output."""

    def __init__(self, module: MultiHeadAttention, *, dtype: torch.dtype) -> None:
        self.queries = Linear(module.W_Q, dtype=dtype)
        self.memory = Linear(module.W_K, module.W_V, dtype=dtype)
        self.output = Linear(module.W_O, dtype=dtype)
        self.heads = _Heads(module)
        self.linears = (self.queries, self.memory, self.output)

    def forward(
        self, x_ND: Tensor, memory: "Memory", target: Packing, *, dropout: KeyedDropout
    ) -> tuple[Tensor, Pullback]:
        """Return the attention output for each target token and its pullback, which adds to `memory.gradient_ND`."""
        source = memory.side
        query = target.to_heads(self.queries.forward(x_ND), parts=1)
        key_value = source.to_heads(self.memory.forward(memory.values_ND), parts=2)
        mixed, pull_heads = self.heads.attend(
            query[0], key_value[0], key_value[1], visibility=memory.visibility, dropout=dropout
        )
        mixed_NA = target.from_heads(mixed[None])

        def pull(gradient_ND: Tensor) -> Tensor:
            query_gradient, memory_gradient = torch.empty_like(query), torch.empty_like(key_value)
            mixed_gradient = target.to_heads(self.output.backward(gradient_ND, mixed_NA), parts=1)[0]
            pull_heads(mixed_gradient, query_gradient[0], memory_gradient[0], memory_gradient[1])
            memory.add(self.memory.backward(source.from_heads(memory_gradient), memory.values_ND))
            return self.queries.backward(target.from_heads(query_gradient), x_ND)

        return self.output.forward(mixed_NA), pull


class Memory:
    """The encoder's output, which every decoder layer reads, and its gradient, the sum over these layers."""

    def __init__(self, values_ND: Tensor, side: Packing, *, visibility: Visibility) -> None:
        self.values_ND, self.side, self.visibility = values_ND, side, visibility
        self.gradient_ND: Tensor | None = None

    def add(self, gradient_ND: Tensor) -> None:
        """Add the gradient of one layer."""
        self.gradient_ND = gradient_ND if self.gradient_ND is None else self.gradient_ND.add_(gradient_ND)


class _Heads:
    """Scaled dot-product attention (equation 1) for every head of every sentence."""

    def __init__(self, module: MultiHeadAttention) -> None:
        self.scale, self.dropout = module.scale, module.dropout

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, visibility: Visibility, dropout: KeyedDropout
    ) -> tuple[Tensor, HeadsPullback]:
        """Return A V and its pullback; all tensors have shape (B·H, length, width)."""
        weights = self._weights(query, key, visibility)
        kept: DropoutMask | None = dropout.keep(weights, probability=self.dropout)
        used = weights if kept is None else kept.times(weights)

        def pull(gradient: Tensor, to_query: Tensor, to_key: Tensor, to_value: Tensor) -> None:
            torch.bmm(used.mT, gradient, out=to_value)
            weights_gradient = gradient @ value.mT
            if kept is not None:
                weights_gradient = kept.times(weights_gradient)
            scores_gradient = self._scores_gradient(weights_gradient, weights)
            torch.bmm(scores_gradient, key, out=to_query)
            torch.bmm(scores_gradient.mT, query, out=to_key)

        return used @ value, pull

    def _weights(self, query: Tensor, key: Tensor, visibility: Visibility) -> Tensor:
        if not fused_kernels.has_kernels(query.dtype):
            scores = torch.baddbmm(visibility.hidden, query, key.mT, alpha=self.scale)
            exact = torch.promote_types(scores.dtype, torch.float32)
            return scores.softmax(dim=-1, dtype=exact).mul_(visibility.is_query).to(scores.dtype)
        scores = query @ key.mT
        keys_of_B, queries_of_B = visibility.keys.length_B, visibility.queries.length_B
        fused_kernels.attention_weights(
            scores, keys_of_B=keys_of_B, queries_of_B=queries_of_B, is_causal=visibility.is_causal, scale=self.scale
        )
        return scores

    def _scores_gradient(self, weights_gradient: Tensor, weights: Tensor) -> Tensor:
        """Return α ∂S; it may overwrite the first operand."""
        if not fused_kernels.has_kernels(weights.dtype):
            exact = torch.promote_types(weights.dtype, torch.float32)
            gradient = torch._softmax_backward_data(weights_gradient.to(exact), weights.to(exact), -1, exact)
            return gradient.mul_(self.scale).to(weights.dtype)
        fused_kernels.attention_gradient(weights_gradient, weights, scale=self.scale)
        return weights_gradient
