"""The feed-forward network (3.3) and its gradient.

a = x W_1ᵀ + b_1        h = max(0, a)        y = h W_2ᵀ + b_2
∂h = ∂y W_2             ∂a = ∂h where h > 0, else 0

Other activations f: h = f(a), ∂a = f'(a) ∂h, which needs a; a · σ(1.702 a) is silu(1.702 a) / 1.702.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from transduce.backpropagation import fused_kernels
from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.linear import Linear
from transduce.backpropagation.pullback import Pullback
from transduce.model.feed_forward import FeedForward

_GELU = torch.ops.aten.gelu_backward
_SLOPES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "gelu": _GELU,
    "gelu_tanh": partial(_GELU, approximate="tanh"),
    "gelu_sigmoid": lambda gradient, inputs: torch.ops.aten.silu_backward(gradient, 1.702 * inputs),
    "silu": torch.ops.aten.silu_backward,
}
ACTIVATIONS = ("relu", *_SLOPES)
"""The activations with a handwritten gradient."""


class HandwrittenFeedForward:
    """The feed-forward network (equation 2) over packed tokens."""

    def __init__(self, module: FeedForward, *, dtype: torch.dtype) -> None:
        self.inner, self.outer = Linear(module.W_1, dtype=dtype), Linear(module.W_2, dtype=dtype)
        self.dropout, self.activation = module.dropout.p, module.activation
        # None for ReLU, whose outputs suffice
        self.slope = None if module.activation_name == "relu" else _SLOPES[module.activation_name]
        self.linears = (self.inner, self.outer)

    def forward(self, x_ND: Tensor, *, dropout: KeyedDropout) -> tuple[Tensor, Pullback]:
        """Return FFN(x), shape (N, D), and its pullback."""
        if self.slope is None:
            hidden_NF = before_NF = self.inner.forward_relu(x_ND)
        else:
            before_NF = self.inner.forward(x_ND)
            hidden_NF = self.activation(before_NF)
        kept = dropout.keep(hidden_NF, probability=self.dropout)
        used_NF = hidden_NF if kept is None else kept.times(hidden_NF)

        def pull(gradient_ND: Tensor) -> Tensor:
            gradient_NF = self.outer.backward(gradient_ND, used_NF)
            if kept is not None:
                gradient_NF = kept.times(gradient_NF)
            if self.slope is not None:
                return self.inner.backward(self.slope(gradient_NF, before_NF), x_ND)
            return self.inner.backward(gradient_NF, x_ND, bias_gradient_O=_relu_gradient_(gradient_NF, hidden_NF))

        return self.outer.forward(used_NF), pull


def _relu_gradient_(gradient_NF: Tensor, output_NF: Tensor) -> Tensor | None:
    """Zero a gradient in place where max(0, ·) is 0; return its sum over rows if a kernel computes it as well."""
    if not fused_kernels.has_kernels(gradient_NF.dtype):
        torch.ops.aten.threshold_backward.grad_input(gradient_NF, output_NF, 0, grad_input=gradient_NF)
        return None
    return fused_kernels.relu_gradient(gradient_NF, output_NF)
