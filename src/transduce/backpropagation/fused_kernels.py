"""The operations between the matrix products of bf16 training, each in one pass over memory, by the C++ core.

torch makes a pass over memory for every operation, and often another to convert between bf16 and float32. The core
reads a row once, computes in float32, and writes the row once (`core/training_bodies.h`). All its instruction sets give
the same bits, and a result depends only on the inputs. It runs on one core, without Python's global lock.

`has_kernels` says whether to call these functions; otherwise torch computes the same, but for a rounding of bf16.
Tensors must be contiguous.
"""

import torch
from torch import Tensor

from transduce.backpropagation.dropout import DropoutDraw
from transduce.core import core, instructions


def has_kernels(dtype: torch.dtype) -> bool:
    """Return whether the core was built and has vector instructions for this precision.

    It depends only on the installation and the processor, so every start of a run makes the same choice.
    """
    return dtype == torch.bfloat16 and instructions()[:1] not in ([], ["portable"])


def label_gradients(logits_RV: Tensor, label_C: Tensor, *, extra: float) -> tuple[Tensor, Tensor, Tensor]:
    """Replace logits z by softmax(z), plus `extra` at the label; set rows without a label to 0.

    Return log Σ e^z, the label's logit and the highest logit of each row with a label.
    """
    statistics_C3 = torch.empty(label_C.numel(), 3)
    operands = (_address(logits_RV), _address(label_C), _address(statistics_C3))
    core.label_gradients(*operands, label_C.numel(), logits_RV.size(0), logits_RV.size(1), extra)
    label_logit_C, highest_logit_C, total_C = statistics_C3.unbind(dim=1)
    return highest_logit_C + total_C.log(), label_logit_C, highest_logit_C


def add_to(total: Tensor, addend: Tensor) -> None:
    """Add a bf16 tensor to a float32 tensor in place."""
    assert total.numel() == addend.numel()
    core.add_to(_address(total), _address(addend), total.numel())


def sum_of_rows(matrix_NO: Tensor) -> Tensor:
    """Return the sum over rows in float32."""
    total_O = torch.zeros(matrix_NO.size(1))
    core.add_sum_of_rows(_address(matrix_NO), _address(total_O), *matrix_NO.shape)
    return total_O


def relu_gradient(gradient_NF: Tensor, output_NF: Tensor) -> Tensor:
    """Zero a gradient in place where the output of max(0, ·) is 0, and return its sum over rows."""
    assert gradient_NF.shape == output_NF.shape
    total_F = torch.zeros(gradient_NF.size(1))
    core.relu_gradient(_address(gradient_NF), _address(output_NF), _address(total_F), *gradient_NF.shape)
    return total_F


def attention_weights(
    scores: Tensor, *, keys_of_B: Tensor, queries_of_B: Tensor, is_causal: bool, scale: float
) -> None:
    """Replace scores (B·H, Q, K) by softmax(scale · scores) over visible keys; set rows of padding to 0."""
    sentences = keys_of_B.numel()
    sizes = (sentences, scores.size(0) // sentences, scores.size(1), scores.size(2))
    operands = (_address(scores), _address(keys_of_B), _address(queries_of_B))
    core.attention_weights(*operands, *sizes, is_causal, scale)


def attention_gradient(gradient: Tensor, weights: Tensor, *, scale: float) -> None:
    """Replace ∂A by α ∂S = α A ∘ (∂A - Σ_k A ∘ ∂A)."""
    rows, keys = gradient.numel() // gradient.size(-1), gradient.size(-1)
    core.attention_gradient(_address(gradient), _address(weights), rows, keys, scale)


Saved = tuple[Tensor, Tensor, Tensor]


class NormedSum:
    """z = x + Dropout(branch) and y = LayerNorm(z) in one pass, and their gradient in another."""

    def __init__(self, gain_D: Tensor, bias_D: Tensor, *, epsilon: float) -> None:
        self.gain_D, self.bias_D, self.epsilon = gain_D, bias_D, epsilon

    def forward(self, x_ND: Tensor, branch_ND: Tensor, draw: DropoutDraw) -> tuple[Tensor, Saved]:
        """Return y, and what `backward` needs: z, mean and 1 / standard deviation of each row, and the random words."""
        sum_ND, y_ND, statistics_N2 = torch.empty_like(x_ND), torch.empty_like(x_ND), torch.empty(x_ND.size(0), 2)
        operands = (_address(x_ND), _address(branch_ND), _address(draw.words), _address(self.gain_D))
        results = (_address(self.bias_D), _address(sum_ND), _address(y_ND), _address(statistics_N2))
        settings = (draw.threshold, draw.scale, self.epsilon)
        core.add_and_norm(*operands, *results, x_ND.size(0), x_ND.size(1), *settings)
        return y_ND, (sum_ND, statistics_N2, draw.words)

    def backward(
        self, gradient_ND: Tensor, saved: Saved, *, threshold: int, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return ∂z, ∂branch, and the gradients of gain and bias, shape (2, D)."""
        sum_ND, statistics_N2, words_ND = saved
        to_sum_ND, to_branch_ND = torch.empty_like(sum_ND), torch.empty_like(sum_ND)
        to_norm_2D = torch.zeros(2, sum_ND.size(1))
        operands = (_address(gradient_ND), _address(sum_ND), _address(words_ND), _address(self.gain_D))
        results = (_address(to_sum_ND), _address(to_branch_ND), _address(to_norm_2D[0]), _address(to_norm_2D[1]))
        sizes = (sum_ND.size(0), sum_ND.size(1))
        core.norm_gradient(*operands, _address(statistics_N2), *results, *sizes, threshold, scale)
        return to_sum_ND, to_branch_ND, to_norm_2D


def _address(tensor: Tensor) -> int:
    assert tensor.is_contiguous()
    return tensor.data_ptr()
