"""Checks of a finished translation against its source: stutter, an odd length, lost numbers."""

import re
from typing import Literal

Doubt = Literal["stutter", "length", "numbers"]

# "urururur": a group of characters four times in a row. "sehr sehr sehr": a word or two three times in a row.
_STUTTER = re.compile(r"(\w{2,6}?)\1{3,}|\b(\w+(?: \w+)?)(?:[ ,]+\2\b){2,}", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_LONG_WORD = 4
_FEW_WORDS = 2
_SHORT_TEXT = 6
_LETTER = re.compile(r"[^\W_]")
_LONGEST_RATIO = 3.0
_LONGER_IS_NORMAL = 30  # characters by which a short text may grow or shrink beyond the ratio


def stutters(source: str, translation: str) -> bool:
    """Return whether a translation repeats a part of a word, or words, and its source does not.

    For a source of one word or two, a word twice is enough ("Montag ist Montag"): 2 of 2,858 such pairs of Tatoeba have
    it, and 9 of 222 labels of menus as the bundled model translates them.
    """
    if _STUTTER.search(source):
        return False
    if len(source.split()) <= _FEW_WORDS and not _repeats_word(source):
        return bool(_STUTTER.search(translation)) or _repeats_word(translation, letters=_LONG_WORD)
    return bool(_STUTTER.search(translation))


def _repeats_word(text: str, *, letters: int = 1) -> bool:
    """Return whether a short text has a word of this length twice; a long one is a sentence (one "word" in Chinese)."""
    words = _WORD.findall(text.casefold())
    long = [word for word in words if len(word) >= letters]
    return len(words) <= _SHORT_TEXT and len(set(long)) < len(long)


def has_odd_length(source: str, translation: str) -> bool:
    """Return whether a translation is much longer or much shorter than its source, or has no letters left."""
    if _LETTER.search(source) and not _LETTER.search(translation):
        return True
    short, long = sorted((len(source.strip()), len(translation.strip())))
    return long > _LONGEST_RATIO * short + _LONGER_IS_NORMAL


def doubts_about(source: str, translation: str, *, lost_numbers: bool) -> tuple[Doubt, ...]:
    """Return the checks that a translation fails."""
    failed: dict[Doubt, bool] = {
        "stutter": stutters(source, translation),
        "length": has_odd_length(source, translation),
        "numbers": lost_numbers,
    }
    return tuple(doubt for doubt, is_failed in failed.items() if is_failed)
