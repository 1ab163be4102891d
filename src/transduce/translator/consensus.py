"""Consensus decoding: minimum Bayes risk over the final hypotheses of beam search.

The paper takes the most probable output. That is often too short, or unlike all other outputs that the model finds
probable. Departure by name (`DecodingConfig.consensus`): take the hypothesis of the beam with the highest expected
similarity to the others, each weighted by its probability (Kumar and Byrne 2004):

    best = argmax_Y Σ_Y' w(Y') · F(Y, Y')        w(Y') ∝ exp(2 · score(Y'))

F is the mean of two similarities between 0 and 1, one over n-grams of 1 to 6 characters and one over n-grams of 1 to 4
words:

    2 · shared_n / (count_n(Y) + count_n(Y'))        averaged over n

An n-gram that occurs several times counts as shared as often as in the text with fewer of them. F is close to chrF++
(Popović 2017). It compares texts and not tokens, since one text can have several tokenisations. Scores are
log-probabilities over the length penalty of section 6.1, so that short outputs do not outweigh the others; the factor 2
was chosen on the validation set of Multi30k. Consensus changes only the order: scores and log-probabilities stay.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis

SHARPNESS = 2.0  # from 1 to 3 BLEU varies by less than 0.2
LONGEST_OF_CHARACTERS = 6
LONGEST_OF_WORDS = 4
_WORD = re.compile(r"\w+|[^\w\s]")

Decode = Callable[[Sequence[int]], str]
"""Maps the tokens of an output to its text."""


def all_hypotheses(config: DecodingConfig) -> DecodingConfig:
    """Return the settings with as many alternatives as the beam, so that search returns all final hypotheses."""
    return config if config.sample else config.model_copy(update={"alternatives": config.beam})


def by_agreement(hypotheses: Sequence[Hypothesis], *, decode: Decode) -> list[Hypothesis]:
    """Return the hypotheses of one sentence by agreement with the others, highest first; ties keep their order.

    All count in the sum. Of several hypotheses with the same text, only the first is ranked; the others come last.
    """
    if len(hypotheses) < 2:
        return list(hypotheses)
    scores_K = np.array([hypothesis.score for hypothesis in hypotheses])
    weights_K = np.exp(SHARPNESS * (scores_K - scores_K.max()))
    texts = [decode(hypothesis.tokens) for hypothesis in hypotheses]
    agreement_K = agreements(texts) @ weights_K
    places = sorted(np.argsort(-agreement_K, kind="stable").tolist(), key=lambda place: texts[place] in texts[:place])
    return [hypotheses[place] for place in places]


def agreements(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return F for every pair of K texts, shape (K, K)."""
    characters_KK = _ngram_similarity([list(text) for text in texts], longest=LONGEST_OF_CHARACTERS)
    words_KK = _ngram_similarity([_WORD.findall(text) for text in texts], longest=LONGEST_OF_WORDS)
    return (characters_KK + words_KK) / 2


def _ngram_similarity(texts: Sequence[Sequence[str]], *, longest: int) -> NDArray[np.float64]:
    """Return the mean similarity over n-grams of 1 to `longest` symbols for every pair of K texts, shape (K, K).

    In shapes, S are the symbols of all texts joined, R the n-grams.
    """
    numbers: dict[str, int] = {}
    symbols_S = np.array(
        [numbers.setdefault(symbol, len(numbers)) for text in texts for symbol in text], dtype=np.int64
    )
    texts_S = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    left_S = np.concatenate([np.arange(len(text), 0, -1) for text in texts])  # symbols to the end of the text
    starts_R, ngrams_R = np.arange(len(symbols_S)), symbols_S
    total_KK = np.zeros((len(texts), len(texts)))
    for n in range(1, longest + 1):
        if n > 1:  # an n-gram is an (n - 1)-gram and the symbol after it
            fits_R = left_S[starts_R] >= n
            starts_R, ngrams_R = starts_R[fits_R], ngrams_R[fits_R]
            _, ngrams_R = np.unique(ngrams_R * len(numbers) + symbols_S[starts_R + n - 1], return_inverse=True)
        times_KR = np.zeros((len(texts), int(ngrams_R.max(initial=-1)) + 1))
        np.add.at(times_KR, (texts_S[starts_R], ngrams_R), 1.0)
        counts_K = times_KR.sum(axis=1)
        total_KK += 2.0 * _shared(times_KR) / np.maximum(counts_K[:, None] + counts_K, 1.0)
    return total_KK / longest


def _shared(times_KR: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ_R min(times_R, times'_R) for every pair of rows, shape (K, K)."""
    shared_KK = np.zeros((len(times_KR), len(times_KR)))
    for times in range(1, int(times_KR.max(initial=0)) + 1):
        has_KR = (times_KR >= times).astype(np.float64)
        shared_KK += has_KR @ has_KR.T
    return shared_KK
