"""Linear maps and their gradients.

    y = x Wᵀ + b        ∂x = ∂y W        ∂W = ∂yᵀ x        ∂b = Σ_n ∂y_n

Maps of the same inputs (W_Q, W_K, W_V) are joined into one matrix. Weights are rounded to the network's precision once
a step; gradients are summed in the precision of the parameters.

In bf16, oneDNN multiplies weights in a layout of its own and would convert them at every call. Large ones are converted
here once a step, W and Wᵀ.
"""

from typing import cast

import torch
from torch import Tensor, nn

from transduce.backpropagation import fused_kernels

_SMALL = 1 << 18  # number of weights up to which the conversion takes longer than it saves (docs/decisions/0007)
_ROWS = 4096  # about the number of rows of a product: a hint to oneDNN, whose layout works for any number


class Linear:
    """One or more linear maps of the model over the same inputs, joined into one."""

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
        """Round the current weights of the model, and convert large ones to oneDNN's layout."""
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

        A caller that already has the gradient of the bias, the sum over rows, can pass it.
        """
        self.add_gradients(gradient_NO, inputs_NI, bias_gradient_O=bias_gradient_O)
        if self.is_laid_out:
            return _onednn_product(gradient_NO, self.backward_layout, None, activation="none")
        return gradient_NO @ self.weight_OI

    def add_gradients(self, gradient_NO: Tensor, inputs_NI: Tensor, *, bias_gradient_O: Tensor | None = None) -> None:
        """Add the gradients of weights and biases to the `grad`s of the model's parameters."""
        weight_gradients = (gradient_NO.T @ inputs_NI).split(self.sizes)
        for each, weight_gradient_OI in zip(self.maps, weight_gradients, strict=True):
            add_gradient(each.weight, weight_gradient_OI)
        if self.bias_O is not None:
            if bias_gradient_O is None:
                bias_gradient_O = sum_of_rows(gradient_NO)
            for each, part_O in zip(self.maps, bias_gradient_O.split(self.sizes), strict=True):
                add_gradient(each.bias, part_O)


def sum_of_rows(matrix_NO: Tensor) -> Tensor:
    """Return the sum over rows, computed in at least float32."""
    if not fused_kernels.has_kernels(matrix_NO.dtype):
        # A product with ones is torch's fastest sum over rows on a CPU, and it sums in float32.
        return (matrix_NO.new_ones(1, matrix_NO.size(0)) @ matrix_NO)[0]
    return fused_kernels.sum_of_rows(matrix_NO)


def add_gradient(parameter: Tensor, gradient: Tensor) -> None:
    """Add to the gradient of a parameter in place, since `FlatParameters` keeps all gradients in one vector."""
    assert parameter.grad is not None, "FlatParameters allocates the gradients before the first pass"
    add_to(parameter.grad, gradient)


def add_to(total: Tensor, addend: Tensor) -> None:
    """Add a tensor to another of the same shape and at least the same precision, in place."""
    is_plain = total.dtype == torch.float32 and total.is_contiguous() and addend.is_contiguous()
    if is_plain and fused_kernels.has_kernels(addend.dtype):
        fused_kernels.add_to(total, addend)  # torch would first copy the addend to float32
    else:
        total.add_(addend)


def _onednn_product(inputs_NI: Tensor, weight: Tensor, bias_O: Tensor | None, *, activation: str) -> Tensor:
    # oneDNN adds the bias and applies the activation while a block of the product is in registers.
    return cast("Tensor", torch.ops.mkldnn._linear_pointwise(inputs_NI, weight, bias_O, activation, [], ""))
