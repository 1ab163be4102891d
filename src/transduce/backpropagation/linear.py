"""Linear maps and their gradients.

    y = x Wᵀ + b        ∂x = ∂y W        ∂W = ∂yᵀ x        ∂b = Σ_n ∂y_n

Maps of the same inputs (W_Q, W_K, W_V) are joined into one matrix. Products are taken in the network's precision from
weights that are rounded once a step; gradients are added up in the parameters' own.

In bf16, oneDNN's product takes weights in a layout of its own. It would bring them there at every call; here it is done
once a step, for W and for Wᵀ.
"""

from typing import cast

import torch
from torch import Tensor, nn

_ROWS = 4096  # about how many rows products have: a hint for the layout, which serves any number


class Linear:
    """One or more of the model's linear maps over the same inputs, as one."""

    def __init__(self, *maps: nn.Linear, dtype: torch.dtype) -> None:
        self.maps = maps
        self.sizes = [each.out_features for each in maps]
        like = maps[0].weight
        self.weight_OI = torch.empty(sum(self.sizes), maps[0].in_features, dtype=dtype, device=like.device)
        self.is_laid_out = dtype == torch.bfloat16 and torch.backends.mkldnn.is_available()
        self.forward_layout = self.backward_layout = self.weight_OI
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
        if self.is_laid_out:
            self.forward_layout = torch.ops.mkldnn._reorder_linear_weight(self.weight_OI, _ROWS)
            self.backward_layout = torch.ops.mkldnn._reorder_linear_weight(self.weight_OI.T.contiguous(), _ROWS)

    def forward(self, inputs_NI: Tensor) -> Tensor:
        """Return x Wᵀ + b, shape (N, O)."""
        if self.is_laid_out:
            return _laid_out_product(inputs_NI, self.forward_layout, self.bias_O, activation="none")
        outputs_NO = inputs_NI @ self.weight_OI.T
        return outputs_NO if self.bias_O is None else outputs_NO.add_(self.bias_O)

    def forward_relu(self, inputs_NI: Tensor) -> Tensor:
        """Return max(0, x Wᵀ + b), shape (N, O)."""
        if self.is_laid_out:
            return _laid_out_product(inputs_NI, self.forward_layout, self.bias_O, activation="relu")
        return self.forward(inputs_NI).relu_()

    def backward(self, gradient_NO: Tensor, inputs_NI: Tensor) -> Tensor:
        """Add the gradients of weights and biases; return the gradient of the inputs, shape (N, I)."""
        self.add_gradients(gradient_NO, inputs_NI)
        if self.is_laid_out:
            return _laid_out_product(gradient_NO, self.backward_layout, None, activation="none")
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


def _laid_out_product(inputs_NI: Tensor, weight: Tensor, bias_O: Tensor | None, *, activation: str) -> Tensor:
    # oneDNN adds the bias and applies the activation while a block of the product is still in registers.
    return cast("Tensor", torch.ops.mkldnn._linear_pointwise(inputs_NI, weight, bias_O, activation, [], ""))
