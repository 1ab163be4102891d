"""Label smoothing and the training loss, section 5.4 of "Attention Is All You Need".

    loss = -Σ_t Σ_v q_t(v) · log softmax(h_t Eᵀ)[v]

summed over the target tokens that are not padding; `step.py` divides it by the tokens of the whole step. q_t gives the
true token a probability of about 1 - ε_ls, with ε_ls = 0.1, and spreads the rest over the vocabulary:

    szegedy   q(true) = 1 - ε + ε/V    q(other) = ε/V          the work that 5.4 cites; our default
    authors   q(true) = 1 - ε          q(other) = ε/(V - 1)    the authors' code

The default follows the paper. `authors` at ε equals `szegedy` at ε·V/(V - 1), so at V = 37,000 the choice changes only
the sixth digit of ε. "This hurts perplexity": so perplexity is computed from the unsmoothed sum, `Loss.nll`.

Departure by name (`TrainingConfig.r_drop`): R-Drop (Liang et al. 2021) runs each batch twice with different dropout and
adds the divergence of the two predictions. The sum is halved, so that weight 0 gives the loss above:

    loss = ½ (loss_1 + loss_2) + weight/4 · Σ_t (KL(p_1 ‖ p_2) + KL(p_2 ‖ p_1))
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transduce.networks.output import Output
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.training.chunked_loss import ChunkedLoss, LogitsBuffer, LossSums, LossWeights


@dataclass(frozen=True)
class Smoothing:
    """The target distribution q: the probability of the true token and of each other token."""

    true: float
    other: float

    @classmethod
    def of(cls, epsilon: float, *, vocabulary_size: int, convention: Literal["szegedy", "authors"]) -> "Smoothing":
        """Return the distribution smoothed by `epsilon` under one of the two conventions."""
        if convention == "szegedy":
            return cls(true=1.0 - epsilon + epsilon / vocabulary_size, other=epsilon / vocabulary_size)
        return cls(true=1.0 - epsilon, other=epsilon / (vocabulary_size - 1))

    def entropy(self, vocabulary_size: int) -> float:
        """Return the entropy of q, which is the smallest possible loss of a token."""
        others = (vocabulary_size - 1) * self.other * math.log(self.other) if self.other else 0.0
        return -self.true * math.log(self.true) - others


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
    hiddens_BTD: Sequence[Tensor],
    output: Output,
    target_BT: Tensor,
    *,
    smoothing: Smoothing,
    r_drop: float = 0.0,
    product_dtype: torch.dtype | None = None,
    padding: int = OWN_SPECIAL_TOKENS.padding,
) -> Loss:
    """Return the loss of one dropout pass, or R-Drop's loss of two, with the logits of one chunk in memory at a time.

    Matrix products are in `product_dtype` (the hidden states' dtype unless given), everything else in at least float32.
    """
    rows_R = (target_BT.flatten() != padding).nonzero()[:, 0]
    matrix_VD, bias_V = output.matrix_VD, output.bias_V
    if not torch.is_grad_enabled():
        matrix_VD, bias_V = matrix_VD.detach(), None if bias_V is None else bias_V.detach()
    hidden_PND = _stacked([hidden_BTD.flatten(end_dim=-2) for hidden_BTD in hiddens_BTD], r_drop)
    objective, nll, correct = ChunkedLoss.apply(  # type: ignore[no-untyped-call]
        hidden_PND,
        matrix_VD,
        bias_V,
        target_BT.flatten(),
        rows_R,
        LossWeights(true=smoothing.true, other=smoothing.other, divergence=r_drop),
        product_dtype or hidden_PND.dtype,
    )
    return Loss(objective=objective, nll=nll, correct=correct, tokens=rows_R.numel())


def token_loss_and_gradient(
    hiddens_ND: Sequence[Tensor],
    output: Output,
    label_N: Tensor,
    *,
    smoothing: Smoothing,
    r_drop: float = 0.0,
    product_dtype: torch.dtype | None = None,
    buffer: LogitsBuffer | None = None,
) -> tuple[Loss, list[Tensor]]:
    """Return the loss of `token_loss` for packed tokens, and the gradient of the hidden states of each pass.

    Hidden states beyond the labels have no loss and gradient 0. The gradients of the output layer are added to its
    `grad`s. Pass the same `buffer` for every batch to reuse the memory of the logits.
    """
    matrix_VD, bias_V = output.matrix_VD, output.bias_V
    assert matrix_VD.grad is not None
    hidden_PND = _stacked(hiddens_ND, r_drop)
    weights = LossWeights(true=smoothing.true, other=smoothing.other, divergence=r_drop)
    frozen = Output(matrix_VD.detach(), None if bias_V is None else bias_V.detach())
    sums = LossSums(hidden_PND, frozen, weights, product_dtype or hidden_PND.dtype, buffer=buffer)
    sums.want_gradients(matrix_VD.grad, None if bias_V is None else bias_V.grad)
    sums.add_all(label_N)
    assert sums.hidden_gradient_PND is not None
    loss = Loss(objective=sums.objective, nll=sums.nll, correct=sums.correct, tokens=label_N.numel())
    return loss, list(sums.hidden_gradient_PND)


def _stacked(hiddens_ND: Sequence[Tensor], r_drop: float) -> Tensor:
    """Return the hidden states of the dropout passes with a first axis P; a single pass is not copied."""
    assert len(hiddens_ND) == (2 if r_drop else 1)
    return torch.stack(list(hiddens_ND)) if len(hiddens_ND) > 1 else hiddens_ND[0][None]
