"""The output that the others agree with: minimum Bayes risk over what beam search ends with.

The paper takes the most probable output, and a model's most probable output is often too short, or a stray one of
which nothing else the model finds probable has a part. A departure by name (`DecodingConfig.consensus`) takes, of the
hypotheses of a beam, the one that would please most if another of them were the right one (Kumar and Byrne 2004):

    best = argmax_Y Σ_Y' w(Y') · F(Y, Y')        w(Y') ∝ exp(2 · score(Y'))

F is between 0 and 1, the mean of two: of how many runs of 1 to 6 characters and of 1 to 4 words two texts share,

    2 · shared_n / (count_n(Y) + count_n(Y'))        averaged over n

where a run that repeats is shared as often as in the text that has it less. This is near to chrF++ (Popović 2017), and
knows nothing of pieces, of which one text may be made in several ways. Scores are log-probabilities over the length
penalty of section 6.1, so that short outputs do not have all the votes; their weight was chosen on Multi30k's
validation text. Only the order changes: scores and log-probabilities stay the model's own.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis

SHARPNESS = 2.0  # from 1 to 3 it hardly matters: within 0.2 BLEU
LONGEST_OF_CHARACTERS = 6
LONGEST_OF_WORDS = 4
_WORD = re.compile(r"\w+|[^\w\s]")

Decode = Callable[[Sequence[int]], str]
"""From an output's tokens to its text."""


def all_hypotheses(config: DecodingConfig) -> DecodingConfig:
    """Return settings under which a search gives every hypothesis that it ends with, to choose among."""
    return config if config.sample else config.model_copy(update={"alternatives": config.beam})


def by_agreement(hypotheses: Sequence[Hypothesis], *, decode: Decode) -> list[Hypothesis]:
    """Return the hypotheses of one sentence, first the one that the others agree with most; equals as they came.

    All have their vote, but where several make one text only the first of them is ranked: the others come last.
    """
    if len(hypotheses) < 2:
        return list(hypotheses)
    scores_K = np.array([own.score for own in hypotheses])
    weights_K = np.exp(SHARPNESS * (scores_K - scores_K.max()))
    texts = [decode(own.tokens) for own in hypotheses]
    agreement_K = agreements(texts) @ weights_K
    places = sorted(np.argsort(-agreement_K, kind="stable").tolist(), key=lambda place: texts[place] in texts[:place])
    return [hypotheses[place] for place in places]


def agreements(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return F of every two texts, shape (K, K)."""
    characters_KK = _shared_runs([list(text) for text in texts], longest=LONGEST_OF_CHARACTERS)
    words_KK = _shared_runs([_WORD.findall(text) for text in texts], longest=LONGEST_OF_WORDS)
    return (characters_KK + words_KK) / 2


def _shared_runs(texts: Sequence[Sequence[str]], *, longest: int) -> NDArray[np.float64]:
    """Return what every two texts share of their runs of 1 to `longest` symbols, on average, shape (K, K)."""
    names: dict[str, int] = {}
    symbols_S = np.array([names.setdefault(symbol, len(names)) for text in texts for symbol in text], dtype=np.int64)
    texts_S = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    left_S = np.concatenate([np.arange(len(text), 0, -1) for text in texts])  # to the end of its text
    starts_R, runs_R = np.arange(len(symbols_S)), symbols_S
    total_KK = np.zeros((len(texts), len(texts)))
    for n in range(1, longest + 1):
        if n > 1:  # a run of n is a run of n - 1 and the symbol after it
            is_whole_R = left_S[starts_R] >= n
            starts_R, runs_R = starts_R[is_whole_R], runs_R[is_whole_R]
            _, runs_R = np.unique(runs_R * len(names) + symbols_S[starts_R + n - 1], return_inverse=True)
        times_KR = np.zeros((len(texts), int(runs_R.max(initial=-1)) + 1))
        np.add.at(times_KR, (texts_S[starts_R], runs_R), 1.0)
        counts_K = times_KR.sum(axis=1)
        total_KK += 2.0 * _shared(times_KR) / np.maximum(counts_K[:, None] + counts_K, 1.0)
    return total_KK / longest


def _shared(times_KR: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ_R min(times of the one, times of the other) of every two rows, shape (K, K)."""
    shared_KK = np.zeros((len(times_KR), len(times_KR)))
    for times in range(1, int(times_KR.max(initial=0)) + 1):
        has_KR = (times_KR >= times).astype(np.float64)
        shared_KK += has_KR @ has_KR.T
    return shared_KK
