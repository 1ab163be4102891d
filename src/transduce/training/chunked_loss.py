"""The loss of section 5.4 in chunks of tokens, so that memory never holds the logits of a whole batch.

For 25,000 target tokens and a vocabulary of 37,000, the logits would take 3.7 GB and their gradient as much again. But
the gradient of a token's loss depends on the logits z of that token alone:

    ∂loss/∂z = softmax(z) - q

So the forward pass also computes each chunk's share of the gradients of the hidden states and the output matrix, and
then frees the logits. The backward pass only scales these gradients.

The uniform part of q is the same for every token: its products with the output matrix are computed once, as vectors.

Shapes here: N tokens of a batch, R rows of a chunk, of which the first C have a label.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.backpropagation import fused_kernels
from transduce.backpropagation.linear import add_to
from transduce.networks.output import Output
from transduce.training.smoothing import Smoothing

LOGITS_AT_ONCE = 1 << 24  # per chunk: 128 MiB for logits in bf16, their softmax in float32, and its copy in bf16
_SAFE_PROBABILITY = 1e-30  # large enough to take its logarithm: far above the smallest normal number, 1e-38


@dataclass(frozen=True)
class Predictions:
    """The probabilities of one chunk, and what its sums need of the logits."""

    probabilities_RV: Tensor
    log_normalizer_C: Tensor
    """log Σ e^z."""
    label_logit_C: Tensor
    highest_logit_C: Tensor


class LogitsBuffer:
    """Memory for the logits of a chunk, reused from batch to batch.

    The logits are the largest block of a step, and each batch needs a block of a slightly different size. If every
    batch allocated its own, it would often fit into no gap of the heap, and the heap would grow for hundreds of steps.
    """

    def __init__(self) -> None:
        self._kept: Tensor | None = None

    def product(self, hidden_RD: Tensor, matrix_VD: Tensor) -> Tensor:
        """Return the logits without the bias; the next call overwrites them."""
        rows, size = hidden_RD.size(0), matrix_VD.size(0)
        if self._kept is None or self._kept.numel() < rows * size or self._kept.dtype != matrix_VD.dtype:
            self._kept = None  # free the old block before the allocation of the new one
            self._kept = matrix_VD.new_empty(rows * size)
        return torch.mm(hidden_RD, matrix_VD.T, out=self._kept[: rows * size].view(rows, size))


class ChunkedLoss(torch.autograd.Function):
    """Smoothed cross-entropy summed over tokens; its forward pass also computes the gradients."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch gives it no public type
        hidden_ND: Tensor,
        matrix_VD: Tensor,
        bias_V: Tensor | None,
        label_N: Tensor,
        rows_R: Tensor,
        smoothing: Smoothing,
        product_dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return objective, unsmoothed loss and correct labels, summed over `rows_R`."""
        sums = LossSums(hidden_ND, Output(matrix_VD, bias_V), smoothing, product_dtype)
        if any(ctx.needs_input_grad[:3]):
            of_bias_V = None if bias_V is None else torch.zeros_like(bias_V, dtype=sums.dtype)
            sums.want_gradients(torch.zeros_like(matrix_VD, dtype=sums.dtype), of_bias_V)
        for some_rows_C in rows_R.split(sums.rows_at_once):
            sums.add_chunk(some_rows_C, label_N[some_rows_C])
        sums.finish()
        ctx.save_for_backward(sums.hidden_gradient_ND, sums.matrix_gradient_VD, sums.bias_gradient_V)
        ctx.mark_non_differentiable(sums.nll, sums.correct)
        return sums.objective, sums.nll, sums.correct

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,  # noqa: ANN401
        factor: Tensor,
        _nll: Tensor,
        _correct: Tensor,
    ) -> tuple[Tensor | None, ...]:
        """Scale the gradients that the forward pass computed."""
        scaled = [None if gradient is None else gradient.mul_(factor) for gradient in ctx.saved_tensors]
        return *scaled, None, None, None, None


class LossSums:
    """The sums and gradients of a batch, to which each chunk is added."""

    def __init__(
        self,
        hidden_ND: Tensor,
        output: Output,
        smoothing: Smoothing,
        product_dtype: torch.dtype,
        *,
        buffer: LogitsBuffer | None = None,
    ) -> None:
        self.hidden_ND, self.smoothing = hidden_ND, smoothing
        self.buffer = buffer or LogitsBuffer()
        self.dtype = torch.promote_types(hidden_ND.dtype, torch.float32)
        self.product_VD = output.matrix_VD.to(product_dtype)
        self.bias_V = None if output.bias_V is None else output.bias_V.to(product_dtype)
        self.bias_sum = 0.0 if output.bias_V is None else float(output.bias_V.sum(dtype=self.dtype))
        self.has_kernels = output.matrix_VD.device.type == "cpu" and fused_kernels.has_kernels(product_dtype)
        self.matrix_sum_D = output.matrix_VD.sum(dim=0, dtype=self.dtype)
        self.hidden_sum_D = torch.zeros_like(self.matrix_sum_D)
        self.objective, self.nll, self.correct = (self.matrix_sum_D.new_zeros(()) for _ in range(3))
        self.hidden_gradient_ND: Tensor | None = None
        self.matrix_gradient_VD: Tensor | None = None
        self.bias_gradient_V: Tensor | None = None

    def want_gradients(self, matrix_gradient_VD: Tensor, bias_gradient_V: Tensor | None = None) -> None:
        """Also compute gradients; add those of the matrix and the bias to these tensors."""
        self.hidden_gradient_ND, self.matrix_gradient_VD = torch.zeros_like(self.hidden_ND), matrix_gradient_VD
        self.bias_gradient_V = bias_gradient_V

    @property
    def is_in_place(self) -> bool:
        """Whether the C++ core turns the logits into their gradient in place."""
        return self.has_kernels and self.matrix_gradient_VD is not None

    @property
    def rows_at_once(self) -> int:
        """The number of tokens in a chunk; a logit that is changed in place needs a quarter of the memory."""
        logits = 2 * LOGITS_AT_ONCE if self.is_in_place else LOGITS_AT_ONCE
        return max(1, logits // self.product_VD.size(0))

    def add_all(self, label_N: Tensor) -> None:
        """Add all chunks of packed tokens: row n has label n, and rows after the last label have none."""
        for start in range(0, label_N.numel(), self.rows_at_once):
            rows = slice(start, start + self.rows_at_once)
            self.add_chunk(rows, label_N[rows])
        self.finish()

    def add_chunk(self, rows_R: Tensor | slice, label_C: Tensor) -> None:
        """Add one chunk to the sums and gradients; rows without a label only take part in the matrix products."""
        hidden_RD, count = self.hidden_ND[rows_R], label_C.numel()
        prediction = self.predict(hidden_RD, label_C)
        self.add_sums(hidden_RD[:count], prediction)
        if self.matrix_gradient_VD is not None:
            if not self.is_in_place:
                self.add_labels(prediction.probabilities_RV, label_C)
            self.add_gradients(rows_R, hidden_RD, prediction.probabilities_RV, count=count)

    def predict(self, hidden_RD: Tensor, label_C: Tensor) -> Predictions:
        """Return the logits, softmax and log Σ e^z of a chunk.

        The softmax sums in float32. If only the gradient needs it, torch rounds it to the dtype of the products at
        once, which saves two passes over the logits.
        """
        rounded_RD = hidden_RD.to(self.product_VD.dtype)
        if self.is_in_place:
            return self.predict_in_place(self.with_bias(self.buffer.product(rounded_RD, self.product_VD)), label_C)
        logits_RV = self.with_bias(rounded_RD @ self.product_VD.T)
        is_for_gradient_alone = self.matrix_gradient_VD is not None
        probabilities_RV = logits_RV.softmax(dim=-1, dtype=logits_RV.dtype if is_for_gradient_alone else self.dtype)
        logits_CV, probabilities_CV = logits_RV[: label_C.numel()], probabilities_RV[: label_C.numel()]
        highest_logit_C = logits_CV.amax(dim=-1).to(self.dtype)
        label_logit_C = logits_CV.gather(-1, label_C[:, None])[:, 0].to(self.dtype)
        label_probability_C = probabilities_CV.gather(-1, label_C[:, None])[:, 0].to(self.dtype)
        if is_for_gradient_alone and bool(label_probability_C.amin() > _SAFE_PROBABILITY):
            log_normalizer_C = label_logit_C - label_probability_C.log()
        else:
            # p_max = e^(z_max - log Σ e^z) is never tiny, so this is as exact as logsumexp, at a third of the cost.
            log_normalizer_C = highest_logit_C - probabilities_CV.amax(dim=-1).to(self.dtype).log()
        return Predictions(probabilities_RV, log_normalizer_C, label_logit_C, highest_logit_C)

    def with_bias(self, products_RV: Tensor) -> Tensor:
        """Add the bias, if there is one, to the products in place, and return them."""
        return products_RV if self.bias_V is None else products_RV.add_(self.bias_V)

    def predict_in_place(self, logits_RV: Tensor, label_C: Tensor) -> Predictions:
        """Return the predictions of the C++ core, which also adds the label's gradient to the softmax."""
        extra = self.smoothing.other - self.smoothing.true
        found = fused_kernels.label_gradients(logits_RV, label_C.contiguous(), extra=extra)
        return Predictions(logits_RV, *found)

    def add_sums(self, hidden_CD: Tensor, prediction: Predictions) -> None:
        """Add the losses of a chunk and count its correct labels."""
        log_likelihood_C = prediction.label_logit_C - prediction.log_normalizer_C
        # Σ_v log p(v) = Σ_v z_v - V log Σ e^z, and Σ_v z_v is one product with the sum of the matrix's rows.
        vocabulary_size = self.product_VD.size(0)
        log_probability_sum_C = (
            hidden_CD.to(self.dtype) @ self.matrix_sum_D + self.bias_sum - vocabulary_size * prediction.log_normalizer_C
        )
        extra = self.smoothing.true - self.smoothing.other
        cross_entropy_C = -extra * log_likelihood_C - self.smoothing.other * log_probability_sum_C
        self.objective += cross_entropy_C.sum()
        self.nll -= log_likelihood_C.sum()
        self.correct += (prediction.label_logit_C == prediction.highest_logit_C).sum()

    def add_gradients(self, rows_R: Tensor | slice, hidden_RD: Tensor, gradient_RV: Tensor, *, count: int) -> None:
        """Add the gradients of a chunk; `finish` completes that of the matrix."""
        assert self.hidden_gradient_ND is not None
        assert self.matrix_gradient_VD is not None
        rounded_RV = gradient_RV.to(self.product_VD.dtype)
        hidden_gradient_RD = (rounded_RV @ self.product_VD).to(self.dtype) - self.smoothing.other * self.matrix_sum_D
        hidden_gradient_RD[count:] = 0.0
        self.hidden_gradient_ND[rows_R] = hidden_gradient_RD.to(self.hidden_ND.dtype)
        product_RD = hidden_RD.to(self.product_VD.dtype)
        if self.product_VD.dtype == self.dtype:
            self.matrix_gradient_VD.addmm_(rounded_RV.T, product_RD)
        else:
            add_to(self.matrix_gradient_VD, rounded_RV.T @ product_RD)
        self.hidden_sum_D += hidden_RD[:count].sum(dim=0, dtype=self.dtype)
        if self.bias_gradient_V is not None:
            self.bias_gradient_V += gradient_RV[:count].sum(dim=0, dtype=self.dtype) - count * self.smoothing.other

    def add_labels(self, gradient_RV: Tensor, label_C: Tensor) -> None:
        """Subtract the part of q that only the label has, and zero the rows without a label."""
        # torch's scatter_add_ would copy the whole tensor; index_add_ changes one number of each row.
        count = label_C.numel()
        place_C = torch.arange(count, device=label_C.device) * gradient_RV.size(1) + label_C
        extra_C = gradient_RV.new_full((count,), self.smoothing.other - self.smoothing.true)
        gradient_RV.view(-1).index_add_(0, place_C, extra_C)
        gradient_RV[count:] = 0.0

    def finish(self) -> None:
        """Subtract the uniform part of q from the gradient of the matrix: one vector, the same for every row."""
        if self.matrix_gradient_VD is not None:
            self.matrix_gradient_VD -= self.smoothing.other * self.hidden_sum_D
