"""The best continuations of each sentence's beams, with ties decided: the lower beam first, then the lower token.

A step of beam 4 over 32 sentences and 8,000 tokens chooses 8 of 32,000 sums for each sentence. Sorting all would take
longest, so we find the n-th best sum m of a sentence, and sort only the sums that are at least m, seldom more than n.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.networks.stepwise import BestExtensions, Ids, LogProbabilities, not_numbers


def best_candidates(
    log_probabilities_BWV: LogProbabilities, alive_BW: LogProbabilities, *, count: int
) -> BestExtensions:
    """Return the `count` best one-token extensions of each sentence, or all if there are fewer.

    `alive_BW` holds the log-probabilities of the hypotheses that the tokens extend.
    """
    if count == 1:
        return _best(log_probabilities_BWV, alive_BW)
    sums_BN = (log_probabilities_BWV + alive_BW[..., None]).reshape(len(alive_BW), -1)
    count = min(count, sums_BN.shape[1])
    largest_BC = np.partition(sums_BN, -count, axis=1)[:, -count:]
    require_numbers(largest_BC)  # NaN is larger than every number
    row_M, position_M = np.nonzero(sums_BN >= largest_BC[:, :1])
    order_M = np.lexsort((position_M, -sums_BN[row_M, position_M], row_M))
    row_M, position_M = row_M[order_M], position_M[order_M]
    is_best_M = np.arange(len(row_M)) - np.searchsorted(row_M, row_M) < count
    position_BC = position_M[is_best_M].reshape(len(sums_BN), count)
    best_BC = np.take_along_axis(sums_BN, position_BC, axis=1)
    return BestExtensions(best_BC, *np.divmod(position_BC, log_probabilities_BWV.shape[2]))


def stable_topk(values_RN: LogProbabilities, *, count: int) -> tuple[LogProbabilities, Ids]:
    """Return the `count` largest values (all if fewer), largest first, and their positions; ties by position."""
    best = best_candidates(values_RN[:, None], np.zeros((len(values_RN), 1), dtype=values_RN.dtype), count=count)
    return best.log_probabilities_BC, best.tokens_BC


def require_numbers(values: NDArray[Any]) -> None:
    """Raise ModelError if a value is NaN."""
    if np.isnan(values).any():
        raise not_numbers()


def _best(log_probabilities_BWV: LogProbabilities, alive_BW: LogProbabilities) -> BestExtensions:
    sums_BN = (log_probabilities_BWV + alive_BW[..., None]).reshape(len(alive_BW), -1)
    position_B1 = sums_BN.argmax(axis=1, keepdims=True)  # the first of equals; NaN is larger than every number
    best_B1 = np.take_along_axis(sums_BN, position_B1, axis=1)
    require_numbers(best_B1)
    return BestExtensions(best_B1, *np.divmod(position_B1, log_probabilities_BWV.shape[2]))
