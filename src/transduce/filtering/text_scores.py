"""Scores of a pair that need its text alone. The higher a score, the more suspicious the pair."""

import math
import re

from transduce.text.language_detection import language_probabilities
from transduce.text.numbers import missing_numbers
from transduce.text.placeholders import protect

_WORD = re.compile(r"[^\W\d_]+")
_FEWEST_WORDS = 3  # fewer may be names, which are the same in both languages
_LONG_NUMBER = 3  # digits; shorter numbers may be written as words
_SHORT = 5  # characters added to both lengths, so that the ratio of short texts says little


def copied_share(source: str, target: str) -> float:
    """Return the share of the target's words that are words of the source, 0 for a target of few words."""
    words = _WORD.findall(target.casefold())
    if len(words) < _FEWEST_WORDS:
        return 0.0
    known = set(_WORD.findall(source.casefold()))
    return sum(word in known for word in words) / len(words)


def different_numbers(source: str, target: str) -> float:
    """Return how many numbers differ: of another value on the other side, or long and missing there."""
    lost, invented = missing_numbers(source, target), missing_numbers(target, source)
    long = [sum(sum(map(str.isdigit, number)) >= _LONG_NUMBER for number in side) for side in (lost, invented)]
    return float(max(min(len(lost), len(invented)), *long))


def different_placeholders(source: str, target: str) -> float:
    """Return how many placeholders are on one side alone."""
    sides = [set(protect(text, has_symbols=False).unprotected) for text in (source, target)]
    return float(len(sides[0] ^ sides[1]))


def log_length_ratio(source: str, target: str) -> float:
    """Return log(target length / source length) in characters, with a few more on both sides."""
    return math.log((len(target) + _SHORT) / (len(source) + _SHORT))


def wrong_language(source: str, target: str, languages: tuple[str | None, str | None]) -> float:
    """Return 1 - the probability that each side is in its language: of the two sides the higher value."""
    found = [
        1 - language_probabilities(text).get(language.partition("-")[0], 1.0)
        for text, language in zip((source, target), languages, strict=True)
        if language is not None
    ]
    return max(found, default=0.0)
