"""Label smoothing and the training loss, section 5.4 of "Attention Is All You Need".

    loss = -Σ_t Σ_v q_t(v) · log softmax(h_t Eᵀ)[v]

summed over the target tokens that are not padding; who takes the step divides by its token count. q_t gives the true
token all but ε_ls = 0.1 of the probability, and the rest to the vocabulary:

    szegedy   q(true) = 1 - ε + ε/V    q(other) = ε/V          the work that 5.4 cites; our default
    authors   q(true) = 1 - ε          q(other) = ε/(V - 1)    the authors' code

The default follows the printed page; `authors` at ε is `szegedy` at ε·V/(V - 1), so at V = 37,000 the choice moves ε
in the sixth digit. "This hurts perplexity": perplexity is therefore reported from the unsmoothed sum, kept beside.

Departure by name (`TrainingConfig.r_drop`): R-Drop (Liang et al. 2021) runs each batch twice under different dropout
and adds a divergence between the two predictions, halved as a whole so that weight 0 is the loss above:

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
from transduce.training.chunked_loss import ChunkedLoss, LogitsSpace, LossWork, Weights


@dataclass(frozen=True)
class Smoothing:
    """How much probability the target distribution gives the true token and each other one."""

    true: float
    other: float

    @classmethod
    def of(cls, epsilon: float, *, vocabulary_size: int, convention: Literal["szegedy", "authors"]) -> "Smoothing":
        """Return the distribution that smooths by `epsilon` under one of the two conventions."""
        if convention == "szegedy":
            return cls(true=1.0 - epsilon + epsilon / vocabulary_size, other=epsilon / vocabulary_size)
        return cls(true=1.0 - epsilon, other=epsilon / (vocabulary_size - 1))

    def entropy(self, vocabulary_size: int) -> float:
        """Return the least value a token's loss can take: no prediction does better than q itself."""
        others = (vocabulary_size - 1) * self.other * math.log(self.other) if self.other else 0.0
        return -self.true * math.log(self.true) - others


@dataclass(frozen=True)
class Loss:
    """What a batch costs: sums over its target tokens, of which only `objective` carries a gradient."""

    objective: Tensor
    nll: Tensor
    """Unsmoothed -log p of the labels; exp(nll / tokens) is the perplexity."""
    correct: Tensor
    """How many labels had the highest probability, ties included."""
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
    """Return the loss of one dropout pass, or R-Drop's loss of two, without ever holding all logits.

    Matrix products are taken in `product_dtype` (by default the hidden states' own), everything else in at least
    float32.
    """
    assert len(hiddens_BTD) == (2 if r_drop else 1)
    rows_R = (target_BT.flatten() != padding).nonzero()[:, 0]
    matrix_VD, bias_V = output.matrix_VD, output.bias_V
    if not torch.is_grad_enabled():
        matrix_VD, bias_V = matrix_VD.detach(), None if bias_V is None else bias_V.detach()
    by_pass = [hidden_BTD.flatten(end_dim=-2) for hidden_BTD in hiddens_BTD]
    hidden_PND = torch.stack(by_pass) if len(by_pass) > 1 else by_pass[0][None]
    objective, nll, correct = ChunkedLoss.apply(  # type: ignore[no-untyped-call]
        hidden_PND,
        matrix_VD,
        bias_V,
        target_BT.flatten(),
        rows_R,
        Weights(true=smoothing.true, other=smoothing.other, divergence=r_drop),
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
    space: LogitsSpace | None = None,
) -> tuple[Loss, list[Tensor]]:
    """Return the same loss of packed tokens, and the gradient of each pass's hidden states.

    There may be more hidden states than labels: those have no loss, and gradient 0.
    The gradients of the output layer are added to its `grad`s. Where `space` is kept, so is the memory of the logits.
    """
    assert len(hiddens_ND) == (2 if r_drop else 1)
    matrix_VD, bias_V = output.matrix_VD, output.bias_V
    assert matrix_VD.grad is not None
    hidden_PND = torch.stack(list(hiddens_ND)) if len(hiddens_ND) > 1 else hiddens_ND[0][None]
    weights = Weights(true=smoothing.true, other=smoothing.other, divergence=r_drop)
    frozen = Output(matrix_VD.detach(), None if bias_V is None else bias_V.detach())
    work = LossWork(hidden_PND, frozen, weights, product_dtype or hidden_PND.dtype, space=space)
    work.want_gradients(matrix_VD.grad, None if bias_V is None else bias_V.grad)
    work.take_all(label_N)
    assert work.hidden_gradient_PND is not None
    loss = Loss(objective=work.objective, nll=work.nll, correct=work.correct, tokens=label_N.numel())
    return loss, list(work.hidden_gradient_PND)
