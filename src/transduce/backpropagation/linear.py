"""Linear maps and their gradients.

    y = x Wᵀ + b        ∂x = ∂y W        ∂W = ∂yᵀ x        ∂b = Σ_n ∂y_n

Maps of the same inputs (W_Q, W_K, W_V) are joined into one matrix. Products are taken in the network's precision from
weights that are rounded once a step; gradients are added up in the parameters' own.
"""

from typing import cast

import torch
from torch import Tensor, nn


class Linear:
    """One or more of the model's linear maps over the same inputs, as one."""

    def __init__(self, *maps: nn.Linear, dtype: torch.dtype) -> None:
        self.maps = maps
        self.sizes = [each.out_features for each in maps]
        like = maps[0].weight
        self.weight_OI = torch.empty(sum(self.sizes), maps[0].in_features, dtype=dtype, device=like.device)
        has_bias = maps[0].bias is not None
        self.bias_O = torch.empty(sum(self.sizes), dtype=dtype, device=like.device) if has_bias else None

    def refresh(self) -> None:
        """Round the weights anew."""
        with torch.no_grad():
            for each, weight_OI in zip(self.maps, self.weight_OI.split(self.sizes), strict=True):
                weight_OI.copy_(each.weight)
            if self.bias_O is not None:
                for each, bias_O in zip(self.maps, self.bias_O.split(self.sizes), strict=True):
                    bias_O.copy_(each.bias)

    def forward(self, inputs_NI: Tensor) -> Tensor:
        """Return x Wᵀ + b, shape (N, O)."""
        if self.bias_O is None:
            return inputs_NI @ self.weight_OI.T
        return _product_with_bias(inputs_NI, self.weight_OI, self.bias_O, activation="none")

    def forward_relu(self, inputs_NI: Tensor) -> Tensor:
        """Return max(0, x Wᵀ + b), shape (N, O)."""
        assert self.bias_O is not None
        return _product_with_bias(inputs_NI, self.weight_OI, self.bias_O, activation="relu")

    def backward(self, gradient_NO: Tensor, inputs_NI: Tensor) -> Tensor:
        """Add the gradients of weights and biases; return the gradient of the inputs, shape (N, I)."""
        self.add_gradients(gradient_NO, inputs_NI)
        return gradient_NO @ self.weight_OI

    def add_gradients(self, gradient_NO: Tensor, inputs_NI: Tensor) -> None:
        """Add the gradients of weights and biases to those of the model's parameters."""
        weight_gradients = (gradient_NO.T @ inputs_NI).split(self.sizes)
        for each, weight_gradient_OI in zip(self.maps, weight_gradients, strict=True):
            add_gradient(each.weight, weight_gradient_OI)
        if self.bias_O is not None:
            # A product with ones is the fastest sum over rows that torch has here, and it adds up in float32.
            ones_1N = gradient_NO.new_ones(1, gradient_NO.size(0))
            bias_gradients = (ones_1N @ gradient_NO)[0].split(self.sizes)
            for each, bias_gradient_O in zip(self.maps, bias_gradients, strict=True):
                add_gradient(each.bias, bias_gradient_O)


def add_gradient(parameter: Tensor, gradient: Tensor) -> None:
    """Add to a parameter's gradient in place; training keeps all of them in one piece of memory."""
    assert parameter.grad is not None, "gradients are laid out before the first pass"
    parameter.grad.add_(gradient)


def _product_with_bias(inputs_NI: Tensor, weight_OI: Tensor, bias_O: Tensor, *, activation: str) -> Tensor:
    if inputs_NI.dtype == torch.bfloat16 and torch.backends.mkldnn.is_available():
        # oneDNN adds the bias and applies the activation while a block of the product is still in registers.
        fused = torch.ops.mkldnn._linear_pointwise(inputs_NI, weight_OI, bias_O, activation, [], "")
        return cast("Tensor", fused)
    outputs_NO = torch.addmm(bias_O, inputs_NI, weight_OI.T)
    return outputs_NO.relu_() if activation == "relu" else outputs_NO
