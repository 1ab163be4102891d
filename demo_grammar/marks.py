"""Marks: private characters inside words, with which `labels` finds a part of the tree in the finished sentence.

The `mark` of a part is empty unless `labels` sets it. `english` and `german` put the mark into each word of the part,
before its last letter, so that the rules for capitals, articles, endings and commas see the same letters as without.
"""

_FIRST, _LAST = 0xE000, 0xF8FF  # Unicode's private use area: no word of either language has such a character
_REMOVED = dict.fromkeys(range(_FIRST, _LAST + 1))


def mark(number: int) -> str:
    """Return the mark with this number, counted from 0."""
    return chr(_FIRST + number)


def weave(text: str, mark: str) -> str:
    """Return `text` with the mark in each of its words, or as it is if the mark is empty."""
    if not mark or not text:
        return text
    return " ".join(f"{word[:-1]}{mark}{word[-1]}" for word in text.split(" "))


def unmarked(text: str) -> str:
    """Return the text without any marks."""
    return text.translate(_REMOVED)


def positions(text: str, mark: str) -> tuple[int, ...]:
    """Return the numbers of the words that have the mark; words are what spaces separate, the first is 0."""
    return tuple(number for number, word in enumerate(text.split(" ")) if mark in word)
