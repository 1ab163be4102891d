"""The training loss, section 5.4 of "Attention Is All You Need".

    loss = -Σ_t Σ_v q_t(v) · log softmax(h_t Eᵀ)[v]

summed over the target tokens that are not padding; `step.py` divides it by the tokens of the whole step. q_t is the
target distribution of `smoothing.py`. "This hurts perplexity": so perplexity is computed from the unsmoothed sum,
`Loss.nll`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.networks.output import Output
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.training.chunked_loss import ChunkedLoss, LogitsBuffer, LossSums
from transduce.training.smoothing import Smoothing


@dataclass(frozen=True)
class Loss:
    """The loss of a batch: sums over its target tokens, of which only `objective` has a gradient."""

    objective: Tensor
    nll: Tensor
    """-log p of the labels without smoothing; exp(nll / tokens) is the perplexity."""
    correct: Tensor
    """The number of labels with the highest probability, ties included."""
    tokens: int


def token_loss(
    hidden_BTD: Tensor,
    output: Output,
    target_BT: Tensor,
    *,
    smoothing: Smoothing,
    product_dtype: torch.dtype | None = None,
    padding: int = OWN_SPECIAL_TOKENS.padding,
) -> Loss:
    """Return the loss of a batch, with the logits of one chunk in memory at a time.

    Matrix products are in `product_dtype` (the hidden states' dtype unless given), everything else in at least float32.
    """
    rows_R = (target_BT.flatten() != padding).nonzero()[:, 0]
    matrix_VD, bias_V = output.matrix_VD, output.bias_V
    if not torch.is_grad_enabled():
        matrix_VD, bias_V = matrix_VD.detach(), None if bias_V is None else bias_V.detach()
    hidden_ND = hidden_BTD.flatten(end_dim=-2)
    objective, nll, correct = ChunkedLoss.apply(  # type: ignore[no-untyped-call]
        hidden_ND,
        matrix_VD,
        bias_V,
        target_BT.flatten(),
        rows_R,
        smoothing,
        product_dtype or hidden_ND.dtype,
    )
    return Loss(objective=objective, nll=nll, correct=correct, tokens=rows_R.numel())


def token_loss_and_gradient(
    hidden_ND: Tensor,
    output: Output,
    label_N: Tensor,
    *,
    smoothing: Smoothing,
    product_dtype: torch.dtype | None = None,
    buffer: LogitsBuffer | None = None,
) -> tuple[Loss, Tensor]:
    """Return the loss of `token_loss` for packed tokens, and the gradient of the hidden states.

    Hidden states beyond the labels have no loss and gradient 0. The gradients of the output layer are added to its
    `grad`s. Pass the same `buffer` for every batch to reuse the memory of the logits.
    """
    matrix_VD, bias_V = output.matrix_VD, output.bias_V
    assert matrix_VD.grad is not None
    frozen = Output(matrix_VD.detach(), None if bias_V is None else bias_V.detach())
    sums = LossSums(hidden_ND, frozen, smoothing, product_dtype or hidden_ND.dtype, buffer=buffer)
    sums.want_gradients(matrix_VD.grad, None if bias_V is None else bias_V.grad)
    sums.add_all(label_N)
    assert sums.hidden_gradient_ND is not None
    loss = Loss(objective=sums.objective, nll=sums.nll, correct=sums.correct, tokens=label_N.numel())
    return loss, sums.hidden_gradient_ND
