"""Linear maps and their gradients.

    y = x Wᵀ + b        ∂x = ∂y W        ∂W = ∂yᵀ x        ∂b = Σ_n ∂y_n

Maps of the same inputs (W_Q, W_K, W_V) are joined into one matrix. Products are taken in the network's precision from
weights that are rounded once a step; gradients are added up in the parameters' own.

In bf16, oneDNN's product takes weights in a layout of its own. It would bring them there at every call; for large ones
this is done once a step here, for W and for Wᵀ.
"""

from typing import cast

import torch
from torch import Tensor, nn

from transduce.backpropagation.kernels import kernels_for

_SMALL = 1 << 18  # weights: up to here bringing them into oneDNN's layout takes longer than it saves (0007)
_ROWS = 4096  # about how many rows products have: a hint for the layout, which serves any number


class Linear:
    """One or more of the model's linear maps over the same inputs, as one."""

    def __init__(self, *maps: nn.Linear, dtype: torch.dtype) -> None:
        self.maps = maps
        self.sizes = [each.out_features for each in maps]
        like = maps[0].weight
        self.weight_OI = torch.empty(sum(self.sizes), maps[0].in_features, dtype=dtype, device=like.device)
        self.is_bf16 = dtype == torch.bfloat16 and torch.backends.mkldnn.is_available()
        self.is_laid_out = self.is_bf16 and self.weight_OI.numel() > _SMALL
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
        if self.is_bf16:
            return _onednn_product(inputs_NI, self.forward_layout, self.bias_O, activation="none")
        outputs_NO = inputs_NI @ self.weight_OI.T
        return outputs_NO if self.bias_O is None else outputs_NO.add_(self.bias_O)

    def forward_relu(self, inputs_NI: Tensor) -> Tensor:
        """Return max(0, x Wᵀ + b), shape (N, O)."""
        if self.is_bf16:
            return _onednn_product(inputs_NI, self.forward_layout, self.bias_O, activation="relu")
        return self.forward(inputs_NI).relu_()

    def backward(self, gradient_NO: Tensor, inputs_NI: Tensor, *, bias_gradient_O: Tensor | None = None) -> Tensor:
        """Add the gradients of weights and biases; return the gradient of the inputs, shape (N, I).

        Who knows the bias' gradient, a sum over rows, may hand it over.
        """
        self.add_gradients(gradient_NO, inputs_NI, bias_gradient_O=bias_gradient_O)
        if self.is_laid_out:
            return _onednn_product(gradient_NO, self.backward_layout, None, activation="none")
        return gradient_NO @ self.weight_OI

    def add_gradients(self, gradient_NO: Tensor, inputs_NI: Tensor, *, bias_gradient_O: Tensor | None = None) -> None:
        """Add the gradients of weights and biases to those of the model's parameters."""
        weight_gradients = (gradient_NO.T @ inputs_NI).split(self.sizes)
        for each, weight_gradient_OI in zip(self.maps, weight_gradients, strict=True):
            add_gradient(each.weight, weight_gradient_OI)
        if self.bias_O is not None:
            if bias_gradient_O is None:
                bias_gradient_O = sum_of_rows(gradient_NO)
            for each, part_O in zip(self.maps, bias_gradient_O.split(self.sizes), strict=True):
                add_gradient(each.bias, part_O)


def sum_of_rows(matrix_NO: Tensor) -> Tensor:
    """Return Σ_n, added up in float32 at least."""
    kernels = kernels_for(matrix_NO.dtype)
    if kernels is None:
        # A product with ones is the fastest sum over rows that torch has here, and it adds up in float32.
        return (matrix_NO.new_ones(1, matrix_NO.size(0)) @ matrix_NO)[0]
    return cast("Tensor", kernels.sum_of_rows(matrix_NO))


def add_gradient(parameter: Tensor, gradient: Tensor) -> None:
    """Add to a parameter's gradient in place; training keeps all of them in one piece of memory."""
    assert parameter.grad is not None, "gradients are laid out before the first pass"
    add_to(parameter.grad, gradient)


def add_to(total: Tensor, addend: Tensor) -> None:
    """Add a tensor to another of the same shape and at least the same precision, in place."""
    is_plain = total.dtype == torch.float32 and total.is_contiguous() and addend.is_contiguous()
    kernels = kernels_for(addend.dtype) if is_plain else None
    if kernels is None:
        total.add_(addend)
    else:
        kernels.add_to(total, addend)  # torch would make a copy of the addend in float32 first


def _onednn_product(inputs_NI: Tensor, weight: Tensor, bias_O: Tensor | None, *, activation: str) -> Tensor:
    # oneDNN adds the bias and applies the activation while a block of the product is still in registers.
    return cast("Tensor", torch.ops.mkldnn._linear_pointwise(inputs_NI, weight, bias_O, activation, [], ""))
