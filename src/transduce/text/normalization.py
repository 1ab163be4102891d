"""Normalisation of text, before the tokenizer cuts it into pieces.

The result is in Unicode's NFC. Every space and control character (newlines too) becomes a plain space, with no two
spaces in a row and none at either end. In addition:

- U+2581, which sentencepiece uses to mark the beginning of a word, becomes the underscore that it resembles;
- invisible hints for line breaks (soft hyphen, word joiner, byte order mark) are removed;
- a lone surrogate, which no encoding can write, becomes U+FFFD;
- of more than 30 combining marks in a row, only the first 30 are kept. No language needs more (Unicode's stream-safe
  format has the same limit), and sorting a megabyte of them takes quadratic time.

`normalize` is idempotent. `normalize_with_starts` also returns where in the original text each character came from.
"""

import re
import unicodedata
from itertools import chain

WORD_MARK = "\u2581"
LONGEST_RUN_OF_MARKS = 30

# We list these and do not ask unicodedata, so that a vocabulary means the same under every version of Unicode.
_SPACES = "\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_REMOVED = "\xad\u2060\ufeff"
_SURROGATES = "\ud800-\udfff"
_CHANGED = re.compile(f"[{_SPACES}{_REMOVED}{_SURROGATES}{WORD_MARK}]")
_IS_SPACE = re.compile(f"[{_SPACES}]")
# A cheap test: all combining marks are at U+0300 or above, and spaces keep most runs of such characters short.
_MAY_HAVE_EXCESS_MARKS = re.compile(f"[\u0300-\U0010ffff]{{{LONGEST_RUN_OF_MARKS + 1}}}")


def normalize(text: str) -> str:
    """Return the normalised form of `text`."""
    # Most sentences are printable and in NFC. These tests run in C and let such sentences skip the slow path.
    if not text.isprintable() or WORD_MARK in text:
        text = _CHANGED.sub(lambda match: _replacement(match[0]), text)
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", _without_excess_marks(text))
    if not text.isascii():
        text = _without_excess_marks(text)
    return " ".join(text.split())


def normalize_with_starts(text: str) -> tuple[str, list[int]]:
    """Return `normalize(text)` and, for each of its characters, where in `text` the span that it came from starts.

    A span ends where the next one starts, or at the end of `text`, so together they cover everything after the first
    start. Characters that came from the same span, such as the parts of a decomposed letter, have the same start.
    """
    if normalize(text) == text:
        return text, list(range(len(text)))
    characters: list[str] = []
    starts: list[int] = []
    for position, character in enumerate(text):
        for kept in _replacement(character):
            characters.append(kept)
            starts.append(position)
    characters, starts = _limit_marks(characters, starts)
    characters, starts = _compose(characters, starts)
    characters, starts = _limit_marks(characters, starts)
    return _squeeze_spaces(characters, starts)


def can_stand_in_a_word(text: str) -> bool:
    """Return whether `text` can be part of a word in normalised text."""
    return _CHANGED.search(text) is None


def _replacement(character: str) -> str:
    if character == WORD_MARK:
        return "_"
    if _IS_SPACE.match(character):
        return " "
    if character in _REMOVED:
        return ""
    return "\ufffd" if "\ud800" <= character <= "\udfff" else character


def _without_excess_marks(text: str) -> str:
    if not _MAY_HAVE_EXCESS_MARKS.search(text):
        return text
    return "".join(_limit_marks(list(text), [0] * len(text))[0])


def _limit_marks(characters: list[str], starts: list[int]) -> tuple[list[str], list[int]]:
    kept: list[int] = []
    run = 0
    for index, character in enumerate(characters):
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= LONGEST_RUN_OF_MARKS:
            kept.append(index)
    return [characters[index] for index in kept], [starts[index] for index in kept]


def _joins_the_one_before(character: str) -> bool:
    """Return whether canonical composition can combine `character` with the character before it."""
    # True for combining marks, vowel signs, and the vowels and final consonants of Korean syllables.
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


def _compose(characters: list[str], starts: list[int]) -> tuple[list[str], list[int]]:
    """Compose canonically, one cluster at a time, so that the starts stay known."""
    borders = [index for index, character in enumerate(characters) if not _joins_the_one_before(character)]
    composed: list[str] = []
    composed_starts: list[int] = []
    first = 0
    for last in chain(borders, [len(characters)]):
        cluster = "".join(characters[first:last])
        result = unicodedata.normalize("NFC", cluster)
        composed.extend(result)
        composed_starts.extend(starts[first:last] if result == cluster else [starts[first]] * len(result))
        first = last
    return composed, composed_starts


def _squeeze_spaces(characters: list[str], starts: list[int]) -> tuple[str, list[int]]:
    kept = [
        index
        for index, character in enumerate(characters)
        if character != " " or (index > 0 and characters[index - 1] != " ")
    ]
    if kept and characters[kept[-1]] == " ":
        kept.pop()
    return "".join(characters[index] for index in kept), [starts[index] for index in kept]
