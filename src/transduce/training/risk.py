"""Minimum risk training: to prefer, of what the model itself would write, what comes nearest to the reference.

Likelihood asks for every token of one reference, and knows nothing of what beam search makes of the model. A departure
by name (`TrainingConfig.risk_steps`) shows the model several outputs of its own for each source, its candidates u, with
a reward r(u) for what each shares with the reference y, and lowers the risk (Shen et al. 2016)

    risk(x) = -Σ_u q(u) · r(u)        q(u) = exp(τ · log p(u | x) / |u|) / Σ_u' exp(τ · log p(u' | x) / |u'|)

in which lengths are evened out as Edunov et al. 2018 do, who also found that the loss of section 5.4 should stay beside
it. Both are sums over the tokens of references, so that a long sentence has as much more weight as in that loss:

    loss = Σ_x ( Σ_t token loss of y  +  λ · |y| · risk(x) )

    ∂risk(x) / ∂ log p(u | x) = -τ/|u| · q(u) · (r(u) - Σ_u' q(u') · r(u'))

so that what is better than the others together becomes more probable, what is worse less, and the sum of all stays.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.data.batch import Batch
from transduce.training.chunked_loss import LogitsSpace, LossWork, Weights
from transduce.training.loss import Loss, Smoothing, token_loss_and_gradient

SHARPNESS = 10.0
"""τ: at 1 all candidates count nearly alike, at |u| by their probabilities."""
RISK_WEIGHT = 10.0
"""λ."""


@dataclass(frozen=True)
class Candidates:
    """The candidates of a batch: U outputs of G sources."""

    log_probability_U: Tensor
    length_U: Tensor
    reward_U: Tensor
    pair_U: Tensor
    """Whose output each is, from 0 to G - 1."""
    pairs: int

    def shares(self) -> Tensor:
        """Return q(u): how much of the expectation over its source's candidates each has, shape (U,)."""
        score_U = SHARPNESS * self.log_probability_U / self.length_U
        highest_G = score_U.new_full((self.pairs,), -torch.inf).scatter_reduce_(0, self.pair_U, score_U, "amax")
        share_U = (score_U - highest_G[self.pair_U]).exp()
        return share_U / self.summed(share_U)[self.pair_U]

    def summed(self, value_U: Tensor) -> Tensor:
        """Return the sum over each source's candidates, shape (G,)."""
        return value_U.new_zeros(self.pairs).index_add_(0, self.pair_U, value_U)

    def risk_and_gradient(self) -> tuple[Tensor, Tensor]:
        """Return the risk of every source, shape (G,), and its gradient by each log p(u | x), shape (U,)."""
        share_U = self.shares()
        expected_G = self.summed(share_U * self.reward_U)
        surplus_U = self.reward_U - expected_G[self.pair_U]
        return -expected_G, -SHARPNESS / self.length_U * share_U * surplus_U


def risk_loss_and_gradient(
    hidden_ND: Tensor,
    output_matrix_VD: Tensor,
    batch: Batch,
    *,
    smoothing: Smoothing,
    product_dtype: torch.dtype | None = None,
    space: LogitsSpace | None = None,
) -> tuple[Loss, Tensor]:
    """Return the loss of packed tokens, pairs before candidates, and the gradient of their hidden states.

    The output matrix's gradient is added to its `grad`. What is counted (tokens, nll, correct) is of the pairs alone.
    There may be more hidden states than labels: those have gradient 0.
    """
    assert batch.judged is not None, "this batch has no candidates"
    assert output_matrix_VD.grad is not None
    length_B = (batch.target_BT != 0).sum(dim=1)
    label_N = batch.target_BT[batch.target_BT != 0]
    pairs = length_B.numel() - batch.judged.pair_U.numel()
    length_U, tokens = length_B[pairs:], int(length_B[:pairs].sum())
    loss, (of_pairs_ND,) = token_loss_and_gradient(
        [hidden_ND[:tokens]],
        output_matrix_VD,
        label_N[:tokens],
        smoothing=smoothing,
        product_dtype=product_dtype,
        space=space,
    )
    work = LossWork(
        hidden_ND[None, tokens:],
        output_matrix_VD.detach(),
        Weights(true=1.0, other=0.0),
        product_dtype or hidden_ND.dtype,
        space=space,
    )
    work.want_gradients(output_matrix_VD.grad)
    log_likelihood_N = work.log_likelihoods(label_N[tokens:])
    row_N = torch.repeat_interleave(length_U)
    log_probability_U = log_likelihood_N.new_zeros(length_U.numel()).index_add_(0, row_N, log_likelihood_N)
    candidates = Candidates(
        log_probability_U,
        length_U.to(log_probability_U.dtype),
        batch.judged.reward_U.to(log_probability_U.dtype),
        batch.judged.pair_U,
        pairs=pairs,
    )
    risk_G, gradient_U = candidates.risk_and_gradient()
    weight_G = RISK_WEIGHT * length_B[:pairs].to(risk_G.dtype)
    # A token's loss is -log p, so its weight is the gradient by log p with the other sign.
    work.take_all(label_N[tokens:], weight_N=-(weight_G[candidates.pair_U] * gradient_U)[row_N])
    assert work.hidden_gradient_PND is not None
    whole = Loss(
        objective=loss.objective + (weight_G * risk_G).sum(), nll=loss.nll, correct=loss.correct, tokens=loss.tokens
    )
    return whole, torch.cat([of_pairs_ND, work.hidden_gradient_PND[0]])
