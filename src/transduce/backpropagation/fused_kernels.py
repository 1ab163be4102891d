"""What stands between two matrix products of training in bf16, compiled: `kernel_sources.py` says what it is.

Each function hands the addresses and sizes of its tensors to machine code, which runs on one core and without Python's
lock. Tensors lie in memory row after row, without gaps.
"""

from pathlib import Path

import torch
from torch import Tensor

from transduce.machine_code import MachineCode

_CODE = MachineCode(Path(__file__).parent / "kernel_sources.py", module="transduce.backpropagation.kernel_sources")


def label_gradients(logits_RV: Tensor, label_C: Tensor, *, extra: float) -> tuple[Tensor, Tensor, Tensor]:
    """Turn logits into softmax(z), `extra` added at the label, in place; rows without a label become 0.

    Return log Σ e^z, the label's logit and the highest one of each row that has a label.
    """
    statistics_C3, room_V = torch.empty(label_C.numel(), 3), torch.empty(logits_RV.size(1))
    operands = (logits_RV, label_C, torch.tensor([extra]), statistics_C3, room_V)
    _call("label_gradients", *operands, label_C.numel(), *logits_RV.shape)
    label_logit_C, highest_logit_C, total_C = statistics_C3.unbind(dim=1)
    return highest_logit_C + total_C.log(), label_logit_C, highest_logit_C


def add_to(total: Tensor, addend: Tensor) -> None:
    """Add numbers of bf16 to as many of float32."""
    assert total.numel() == addend.numel()
    _call("add_to", total, addend, total.numel())


def sum_of_rows(matrix_NO: Tensor) -> Tensor:
    """Return Σ_n in float32."""
    total_O = torch.zeros(matrix_NO.size(1))
    _call("add_sum_of_rows", matrix_NO, total_O, *matrix_NO.shape)
    return total_O


def relu_gradient(gradient_NF: Tensor, output_NF: Tensor) -> Tensor:
    """Zero a gradient where max(0, ·) has put out 0, in place, and return its sum over rows."""
    assert gradient_NF.shape == output_NF.shape
    total_F = torch.zeros(gradient_NF.size(1))
    _call("relu_gradient", gradient_NF, output_NF, total_F, *gradient_NF.shape)
    return total_F


def attention_weights(
    scores: Tensor, *, keys_of_B: Tensor, queries_of_B: Tensor, is_causal: bool, scale: float
) -> None:
    """Turn scores (B·H, Q, K) into softmax(scale · scores) over visible keys, in place; rows of padding become 0."""
    sentences = keys_of_B.numel()
    operands = (scores, keys_of_B, queries_of_B, torch.tensor([scale]), torch.empty(scores.size(2)))
    sizes = (sentences, scores.size(0) // sentences, *scores.shape[1:])
    _call("attention_weights", *operands, int(is_causal), *sizes)


def attention_gradient(gradient: Tensor, weights: Tensor, *, scale: float) -> None:
    """Turn ∂A into α ∂S = α A ∘ (∂A - Σ_k A ∘ ∂A), in place."""
    rows, keys = gradient.numel() // gradient.size(-1), gradient.size(-1)
    _call("attention_gradient", gradient, weights, torch.tensor([scale]), rows, keys)


class NormedSum:
    """z = x + Dropout(branch) and y = LayerNorm(z) in one pass, and their gradient in another."""

    def __init__(self, gain_D: Tensor, bias_D: Tensor, *, epsilon: float) -> None:
        self.gain_D, self.bias_D, self.epsilon = gain_D, bias_D, epsilon

    def forward(
        self, x_ND: Tensor, branch_ND: Tensor, words_ND: Tensor, *, threshold: int, scale: float
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Return y, and what the way back needs: z, which of the branch was kept, mean and 1 / deviation."""
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
    """Call a kernel on tensors, which live until it is done, and sizes."""
    assert all(isinstance(each, int) or each.is_contiguous() for each in operands)
    places = [each if isinstance(each, int) else each.data_ptr() for each in operands]
    _CODE.entry(name, len(operands))(*places)
