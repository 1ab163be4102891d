"""The output that the others agree with: minimum Bayes risk over what beam search ends with.

The paper takes the most probable output, and a model's most probable output is often too short, or a stray one of
which nothing else the model finds probable has a part. A departure by name (`DecodingConfig.consensus`) takes, of the
hypotheses of a beam, the one that would please most if another of them were the right one (Kumar and Byrne 2004):

    best = argmax_Y Σ_Y' w(Y') · F(Y, Y')        w(Y') ∝ exp(score(Y'))

    F(Y, Y') = 1/4 · Σ_n 2 · shared_n / (count_n(Y) + count_n(Y'))        n = 1 … 4

count_n is how many runs of n tokens an output has, its end token included, and shared_n how many two of them have in
common, a run that repeats as often as in the one that has it less. Scores are log-probabilities over the length penalty
of section 6.1, so that short outputs do not have all the votes. Only the order changes: scores and log-probabilities
stay the model's own.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis

LONGEST_RUN = 4  # tokens


def all_hypotheses(config: DecodingConfig) -> DecodingConfig:
    """Return settings under which a search gives every hypothesis that it ends with, to choose among."""
    return config if config.sample else config.model_copy(update={"alternatives": config.beam})


def by_agreement(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses of one sentence, first the one that the others agree with most; equals as they came."""
    if len(hypotheses) < 2:
        return list(hypotheses)
    scores_K = np.array([own.score for own in hypotheses])
    weights_K = np.exp(scores_K - scores_K.max())
    agreement_K = agreements([own.tokens for own in hypotheses]) @ weights_K
    return [hypotheses[place] for place in np.argsort(-agreement_K, kind="stable")]


def agreements(outputs: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return F of every two outputs, shape (K, K): symmetric, between 0 and 1, and 1 for equal ones of four tokens."""
    lengths_K = np.array([len(tokens) for tokens in outputs])
    total_KK = np.zeros((len(outputs), len(outputs)))
    for n in range(1, LONGEST_RUN + 1):
        counts_K = np.maximum(lengths_K - n + 1, 0)
        total_KK += 2.0 * _shared(outputs, n) / np.maximum(counts_K[:, None] + counts_K, 1)
    return total_KK / LONGEST_RUN


def _shared(outputs: Sequence[Sequence[int]], n: int) -> NDArray[np.float64]:
    """Return how many runs of n tokens every two outputs have in common, shape (K, K)."""
    names: dict[tuple[int, ...], int] = {}
    occurrences = [
        (row, names.setdefault(tuple(tokens[start : start + n]), len(names)))
        for row, tokens in enumerate(outputs)
        for start in range(len(tokens) - n + 1)
    ]
    counts_KR = np.zeros((len(outputs), len(names)))
    for occurrence in occurrences:
        counts_KR[occurrence] += 1
    shared_KK = np.zeros((len(outputs), len(outputs)))
    for times in range(1, int(counts_KR.max(initial=0)) + 1):
        has_KR = (counts_KR >= times).astype(np.float64)  # Σ min(a, b) = Σ_times [a >= times] · [b >= times]
        shared_KK += has_KR @ has_KR.T
    return shared_KK
