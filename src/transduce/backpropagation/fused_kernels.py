"""Calls of the compiled kernels of `kernel_sources.py`: the operations between the matrix products of bf16 training.

Each function passes the addresses and sizes of its tensors to machine code, which runs on one core without Python's
global lock. Tensors must be contiguous.
"""

from pathlib import Path

import torch
from torch import Tensor

from transduce.machine_code import MachineCode

_CODE = MachineCode(Path(__file__).parent / "kernel_sources.py", module="transduce.backpropagation.kernel_sources")


def label_gradients(logits_RV: Tensor, label_C: Tensor, *, extra: float) -> tuple[Tensor, Tensor, Tensor]:
    """Replace logits z by softmax(z), plus `extra` at the label; set rows without a label to 0.

    Return log Σ e^z, the label's logit and the highest logit of each row with a label.
    """
    statistics_C3, room_V = torch.empty(label_C.numel(), 3), torch.empty(logits_RV.size(1))
    operands = (logits_RV, label_C, torch.tensor([extra]), statistics_C3, room_V)
    _call("label_gradients", *operands, label_C.numel(), *logits_RV.shape)
    label_logit_C, highest_logit_C, total_C = statistics_C3.unbind(dim=1)
    return highest_logit_C + total_C.log(), label_logit_C, highest_logit_C


def add_to(total: Tensor, addend: Tensor) -> None:
    """Add a bf16 tensor to a float32 tensor in place."""
    assert total.numel() == addend.numel()
    _call("add_to", total, addend, total.numel())


def sum_of_rows(matrix_NO: Tensor) -> Tensor:
    """Return the sum over rows in float32."""
    total_O = torch.zeros(matrix_NO.size(1))
    _call("add_sum_of_rows", matrix_NO, total_O, *matrix_NO.shape)
    return total_O


def relu_gradient(gradient_NF: Tensor, output_NF: Tensor) -> Tensor:
    """Zero a gradient in place where the output of max(0, ·) is 0, and return its sum over rows."""
    assert gradient_NF.shape == output_NF.shape
    total_F = torch.zeros(gradient_NF.size(1))
    _call("relu_gradient", gradient_NF, output_NF, total_F, *gradient_NF.shape)
    return total_F


def attention_weights(
    scores: Tensor, *, keys_of_B: Tensor, queries_of_B: Tensor, is_causal: bool, scale: float
) -> None:
    """Replace scores (B·H, Q, K) by softmax(scale · scores) over visible keys; set rows of padding to 0."""
    sentences = keys_of_B.numel()
    operands = (scores, keys_of_B, queries_of_B, torch.tensor([scale]), torch.empty(scores.size(2)))
    sizes = (sentences, scores.size(0) // sentences, *scores.shape[1:])
    _call("attention_weights", *operands, int(is_causal), *sizes)


def attention_gradient(gradient: Tensor, weights: Tensor, *, scale: float) -> None:
    """Replace ∂A by α ∂S = α A ∘ (∂A - Σ_k A ∘ ∂A)."""
    rows, keys = gradient.numel() // gradient.size(-1), gradient.size(-1)
    _call("attention_gradient", gradient, weights, torch.tensor([scale]), rows, keys)


class NormedSum:
    """z = x + Dropout(branch) and y = LayerNorm(z) in one pass, and their gradient in another."""

    def __init__(self, gain_D: Tensor, bias_D: Tensor, *, epsilon: float) -> None:
        self.gain_D, self.bias_D, self.epsilon = gain_D, bias_D, epsilon

    def forward(
        self, x_ND: Tensor, branch_ND: Tensor, words_ND: Tensor, *, threshold: int, scale: float
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Return y, and what `backward` needs: z, which elements dropout kept, mean and 1 / standard deviation."""
        sum_ND, y_ND = torch.empty_like(x_ND), torch.empty_like(x_ND)
        kept_ND, statistics_N2 = torch.empty(x_ND.shape, dtype=torch.uint8), torch.empty(x_ND.size(0), 2)
        settings = torch.tensor([scale, self.epsilon])
        operands = (x_ND, branch_ND, words_ND, settings, self.gain_D, self.bias_D)
        results = (sum_ND, y_ND, kept_ND, statistics_N2, torch.empty(x_ND.size(1)))
        _call("add_and_norm", *operands, *results, threshold, *x_ND.shape)
        return y_ND, (sum_ND, kept_ND, statistics_N2)

    def backward(
        self, gradient_ND: Tensor, kept: tuple[Tensor, Tensor, Tensor], *, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return ∂z, ∂branch, and the gradients of gain and bias, shape (2, D)."""
        sum_ND, kept_ND, statistics_N2 = kept
        to_sum_ND, to_branch_ND = torch.empty_like(sum_ND), torch.empty_like(sum_ND)
        to_norm_2D, room_2D = torch.zeros(2, sum_ND.size(1)), torch.empty(2, sum_ND.size(1))
        operands = (gradient_ND, sum_ND, statistics_N2, self.gain_D, kept_ND, torch.tensor([scale]))
        _call("norm_gradient", *operands, to_sum_ND, to_branch_ND, to_norm_2D, room_2D, *sum_ND.shape)
        return to_sum_ND, to_branch_ND, to_norm_2D


def _call(name: str, *operands: Tensor | int) -> None:
    """Call a kernel with the addresses of tensors, which this call keeps alive, and with sizes."""
    assert all(isinstance(each, int) or each.is_contiguous() for each in operands)
    places = [each if isinstance(each, int) else each.data_ptr() for each in operands]
    _CODE.entry(name, len(operands))(*places)
