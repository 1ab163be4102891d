"""The best continuations of each sentence's beams, with ties decided: the lower beam first, then the lower token.

A step of beam 4 over 32 sentences and 8,000 tokens chooses 8 of 32,000 sums for each sentence. We find the n best sums
without sorting all of them:

1. Cut each beam's tokens into runs and take the maximum of each run.
2. Let m be the n-th largest maximum of a sentence. At least n sums are at least m, so the n best are among these.
3. In the runs whose maximum is at least m, find the sums that are at least m, seldom more than 2n, and sort them.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.networks.stepwise import BestExtensions, Ids, LogProbabilities, not_numbers

RUNS = 8  # for each candidate: with 4, more sums are at least m; with 16, there are more maxima to take
FEWEST_RUNS = 2  # for each candidate; with fewer, all sums are compared
SHORTEST_RUN, LONGEST_RUN = 64, 1000  # tokens; short runs make step 1 slow, long runs step 3


def best_candidates(
    log_probabilities_BWV: LogProbabilities, alive_BW: LogProbabilities, *, count: int
) -> BestExtensions:
    """Return the `count` best one-token extensions of each sentence, or all if there are fewer.

    `alive_BW` holds the log-probabilities of the hypotheses that the tokens extend.
    """
    _, beams, vocabulary_size = log_probabilities_BWV.shape
    count = min(count, beams * vocabulary_size)
    if count == 1:
        return _best(log_probabilities_BWV, alive_BW)
    rows_RV, alive_R = log_probabilities_BWV.reshape(-1, vocabulary_size), alive_BW.reshape(-1)
    row_N, token_N = _reaching_extensions(rows_RV, alive_R, beams=beams, count=count)
    sums_N, sentence_N = rows_RV[row_N, token_N] + alive_R[row_N], row_N // beams
    order_N = np.lexsort((row_N * vocabulary_size + token_N, -sums_N, sentence_N))
    sentence_N = sentence_N[order_N]
    rank_N = np.arange(len(order_N)) - np.searchsorted(sentence_N, sentence_N)
    is_best_N = rank_N < count
    order_N, place = order_N[is_best_N], (sentence_N[is_best_N], rank_N[is_best_N])
    best_BC = np.full((len(alive_BW), count), -math.inf, dtype=sums_N.dtype)
    beams_BC, tokens_BC = np.zeros((2, *best_BC.shape), dtype=np.int64)
    best_BC[place], beams_BC[place], tokens_BC[place] = sums_N[order_N], row_N[order_N] % beams, token_N[order_N]
    return BestExtensions(best_BC, beams_BC, tokens_BC)


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


def _reaching_extensions(
    rows_RV: LogProbabilities, alive_R: LogProbabilities, *, beams: int, count: int
) -> tuple[Ids, Ids]:
    """Return row and token of each possible extension that may be among the `count` best of its sentence."""
    runs, length = _runs(rows_RV.shape[1], beams=beams, count=count)
    whole = runs * length  # tokens that are in runs; each of the few after them is a run of one
    runs_RUN = rows_RV[:, :whole].reshape(len(rows_RV), runs, length)
    maxima_RU = np.concatenate([runs_RUN.max(axis=2), rows_RV[:, whole:]], axis=1) + alive_R[:, None]
    largest_BC = np.partition(maxima_RU.reshape(len(rows_RV) // beams, -1), -count, axis=1)[:, -count:]
    require_numbers(largest_BC)  # NaN is larger than every number
    least_B = np.maximum(largest_BC[:, 0], np.finfo(largest_BC.dtype).min)  # > -inf leaves out impossible extensions
    least_R = least_B.repeat(beams)
    row_M, run_M = _reaching(maxima_RU, least_R)
    is_run_M = run_M < runs
    row_L, run_L = row_M[is_run_M], run_M[is_run_M]
    which_N, place_N = _reaching(runs_RUN[row_L, run_L] + alive_R[row_L, None], least_R[row_L])
    return (
        np.concatenate([row_L[which_N], row_M[~is_run_M]]),
        np.concatenate([run_L[which_N] * length + place_N, run_M[~is_run_M] + (whole - runs)]),
    )


def _runs(vocabulary_size: int, *, beams: int, count: int) -> tuple[int, int]:
    """Return how many runs each beam's tokens are cut into, and the length of each."""
    length = min(max(beams * vocabulary_size // (RUNS * count), SHORTEST_RUN), LONGEST_RUN)
    runs = vocabulary_size // length
    return (runs, vocabulary_size // runs) if beams * runs >= FEWEST_RUNS * count else (0, 1)


def _reaching(values_RN: LogProbabilities, least_R: LogProbabilities) -> tuple[Ids, Ids]:
    """Return row and column of each value that is at least its row's least."""
    return np.divmod(np.flatnonzero(values_RN >= least_R[:, None]), values_RN.shape[1])
