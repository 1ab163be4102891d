"""Calibrating a model with pairs that it was not trained on: its confidence, and its stand-ins for placeholders."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from transduce.errors import DataError
from transduce.files import sha256_of_file
from transduce.model_directory import WEIGHTS
from transduce.translator.calibration import Calibration
from transduce.translator.confidence import GOOD_CHRF, ConfidenceModel, features_of, fit_confidence
from transduce.translator.translation import Translation
from transduce.translator.translator import Translator

FEWEST_PAIRS = 200
_WORD = re.compile(r"[^\W\d_]{3,}")
_TRIED, _TRIALS, _KEPT = 24, 24, 8  # stand-ins that are tried, sentences for each, and how many are kept at most
_RELIABLE = 0.8
_OFTEN = 0.75  # share of a word's pairs that have it on both sides; below 1, since "Tom's" may become "Toms"


def calibrate(translator: Translator, pairs: Sequence[tuple[str, str]]) -> Calibration:
    """Return the calibration of a model from pairs of single sentences that it was not trained on.

    The confidence is fitted to every second pair and checked on the others, and the other way round, so that all pairs
    have a part in `deciles`. Then it is fitted to all.
    """
    if len(pairs) < FEWEST_PAIRS:
        raise DataError(f"Calibration needs {FEWEST_PAIRS} pairs at least, and there are {len(pairs)}. Give more text.")
    found, is_good_N = _translated(translator, pairs)
    features_NF = np.array([features_of(own.source, own.alternatives[0]) for own in found])
    return Calibration(
        weights=sha256_of_file(translator.models[0].folder / WEIGHTS),
        stand_ins=find_stand_ins(translator, pairs),
        confidence=fit_confidence(features_NF, is_good_N),
        deciles=deciles(held_out_confidence(features_NF, is_good_N), is_good_N),
    )


def held_out_confidence(features_NF: NDArray[np.float64], is_good_N: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the confidence of each pair as a regression on the half without it estimates it."""
    confidence_N = np.zeros(len(is_good_N))
    is_even_N = np.arange(len(is_good_N)) % 2 == 0
    for is_fitted_N in (is_even_N, ~is_even_N):
        half = fit_confidence(features_NF[is_fitted_N], is_good_N[is_fitted_N])
        confidence_N[~is_fitted_N] = [half.of_features(row) for row in features_NF[~is_fitted_N].tolist()]
    return confidence_N


def measured_deciles(
    translator: Translator, confidence: ConfidenceModel, pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[float, float], ...]:
    """Return mean confidence and share of good translations in each tenth of `pairs`, lowest confidence first."""
    found, is_good_N = _translated(translator, pairs)
    return deciles(np.array([confidence.of(own.source, own.alternatives[0]) for own in found]), is_good_N)


def _translated(
    translator: Translator, pairs: Sequence[tuple[str, str]]
) -> tuple[list[Translation], NDArray[np.bool_]]:
    """Return the translation of each source, and whether it is good."""
    found = translator.translate([source for source, _ in pairs], keep_placeholders="report")
    chrf = sacrebleu.CHRF()
    scores = (chrf.sentence_score(own.text, [target]).score for own, (_, target) in zip(found, pairs, strict=True))
    return found, np.array([score >= GOOD_CHRF for score in scores])


def deciles(confidence_N: NDArray[np.float64], is_good_N: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """Return mean confidence and share of good translations in each tenth, lowest confidence first."""
    order_N = np.argsort(confidence_N, kind="stable")
    return tuple(
        (round(float(confidence_N[part].mean()), 3), round(float(is_good_N[part].mean()), 3))
        for part in np.array_split(order_N, 10)
    )


def find_stand_ins(translator: Translator, pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return words that the model copies reliably, best first; none if it copies the symbols of placeholders.

    The candidates are capitalized words of one token, mostly names, that usually occur on both sides of a pair. Each is
    tried in sentences with the most frequent candidate, in its place.
    """
    candidates = _copied_words(translator, pairs)
    if not candidates:
        return ()
    frames = [source for source, _ in pairs if len(re.findall(rf"\b{candidates[0]}\b", source)) == 1][:_TRIALS]

    def share_kept(word: str) -> float:
        texts = [re.sub(rf"\b{candidates[0]}\b", word, frame) for frame in frames]
        found = translator.translate(texts, keep_placeholders="off", keep_form=False)
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        return sum(len(whole.findall(own.text)) == 1 for own in found) / len(frames)

    if translator.tokenizers.has_symbols and share_kept("{name}") >= _RELIABLE:
        return ()
    shares = {word: share_kept(word) for word in candidates}
    reliable = [word for word in candidates if shares[word] >= _RELIABLE]
    return tuple(sorted(reliable, key=lambda word: -shares[word])[:_KEPT])


def _copied_words(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return capitalized words of one token that usually occur on both sides of a pair, most frequent first."""
    source, target = translator.tokenizers.source, translator.tokenizers.target
    counts: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    for pair in pairs:
        words = [set(_WORD.findall(text)) for text in pair]
        for counter, own in zip(counts, (*words, words[0] & words[1]), strict=True):
            counter.update(own)
    names = [
        word
        for word, both in counts[2].most_common()
        if both >= max(2, _OFTEN * max(counts[0][word], counts[1][word]))
        and word[0].isupper()
        and len(source.encode(word)) == len(target.encode(word)) == 1
    ]
    return names[:_TRIED]
