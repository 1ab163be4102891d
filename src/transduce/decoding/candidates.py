"""The best continuations of each sentence's beams, with ties decided: the lower beam first, then the lower token.

A step of beam 4 over 32 sentences and 8,000 tokens chooses 8 of 32,000 sums for each sentence. The sums are never
all made: the vocabulary is cut into runs of neighbouring tokens, the runs with the best maxima are found, and only
those are looked into. A token among the best n lies in one of the n runs with the best maxima, because each better
run holds at least one better token; as runs and tokens are in the same order, the same holds among equals.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.errors import ModelError

RUN = 64  # tokens; of 16, 32, 64 and 128 the fastest at V 8,000, and near it at 32,000
FEW = 40_000  # sums that are made and sorted sooner than runs are found


@dataclass(frozen=True)
class Candidates:
    """Extended hypotheses, C for each sentence, best first; log-probability -inf marks one that cannot be."""

    log_probabilities_BC: Tensor
    beams_BC: Tensor
    tokens_BC: Tensor


def best_candidates(log_probabilities_BWV: Tensor, alive_BW: Tensor, *, count: int) -> Candidates:
    """Return the `count` best of all one-token extensions, or all there are, for each sentence.

    `alive_BW` holds the log-probabilities of the hypotheses that the tokens extend.
    """
    _, beams, vocabulary_size = log_probabilities_BWV.shape
    if log_probabilities_BWV.numel() <= FEW or beams * vocabulary_size <= 2 * RUN * count:
        sums_BN = (log_probabilities_BWV + alive_BW[:, :, None]).flatten(start_dim=1)
        best_BC, position_BC = stable_topk(sums_BN, count=count)
    else:
        best_BC, position_BC = _best_in_runs(log_probabilities_BWV, alive_BW, count=count)
    require_numbers(best_BC[:, 0])  # NaN ranks above every number
    return Candidates(best_BC, position_BC // vocabulary_size, position_BC % vocabulary_size)


def require_numbers(values: Tensor) -> None:
    """Refuse to go on with a model that has stopped making sense."""
    if bool(values.isnan().any()):
        raise ModelError(
            "the model's probabilities are not numbers (NaN): its weights are damaged, or its training diverged. "
            "Take an earlier checkpoint, or float32 if it was running in a lower precision."
        )


def stable_topk(values_BN: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest values (or all there are), largest first, and where they are; ties by position.

    torch.topk promises no order among equals, but it is fast and equals are rare: only they pay for a stable sort.
    """
    size = values_BN.size(1)
    count = min(count, size)
    best_BC, position_BC = values_BN.topk(min(count + 1, size), dim=1)
    if bool((best_BC[:, 1:] == best_BC[:, :-1]).any()):
        best_BC, position_BC = values_BN.sort(dim=1, descending=True, stable=True)
    return best_BC[:, :count], position_BC[:, :count]


def _best_in_runs(log_probabilities_BWV: Tensor, alive_BW: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    sentences, beams, vocabulary_size = log_probabilities_BWV.shape
    runs = -(-vocabulary_size // RUN)
    maxima_BWR = _run_maxima(log_probabilities_BWV).add_(alive_BW[:, :, None])
    _, run_BC = stable_topk(maxima_BWR.flatten(start_dim=1), count=count)
    run_BC = run_BC.sort(dim=1).values  # so that, among the tokens looked into, a lower place is a lower position
    beam_BC = run_BC // runs
    token_BCN = (run_BC % runs)[:, :, None] * RUN + torch.arange(RUN, device=run_BC.device)
    position_BCN = beam_BC[:, :, None] * vocabulary_size + token_BCN.clamp(max=vocabulary_size - 1)
    position_BN = position_BCN.flatten(start_dim=1)
    log_probabilities_BN = log_probabilities_BWV.reshape(sentences, beams * vocabulary_size).gather(1, position_BN)
    sums_BCN = log_probabilities_BN.view_as(position_BCN).add_(alive_BW.gather(1, beam_BC)[:, :, None])
    if vocabulary_size % RUN:  # then the last run is shorter, and some of these tokens are beyond it
        sums_BCN.masked_fill_(token_BCN >= vocabulary_size, -math.inf)
    best_BC, place_BC = stable_topk(sums_BCN.flatten(start_dim=1), count=count)
    return best_BC, position_BN.gather(1, place_BC)


def _run_maxima(log_probabilities_BWV: Tensor) -> Tensor:
    vocabulary_size = log_probabilities_BWV.size(-1)
    whole = vocabulary_size - vocabulary_size % RUN
    maxima_BWR: Tensor = log_probabilities_BWV[..., :whole].unflatten(-1, (-1, RUN)).amax(dim=-1)
    if whole == vocabulary_size:
        return maxima_BWR
    return torch.cat([maxima_BWR, log_probabilities_BWV[..., whole:].amax(dim=-1, keepdim=True)], dim=-1)
