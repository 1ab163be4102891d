"""Where words end: which tokens leave the word before them whole, and after which a word may begin without a mark.

A piece with a mark begins a new word, so it leaves the one before it whole; so do the end of the output, punctuation
and placeholders. `s` does not: with it, `▁Hund` becomes another word. A word begins with its mark, or without one after
punctuation, as in `„Hund“`, and after a placeholder, as in `<b>Hund</b>`.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from transduce.special_tokens import SpecialTokens
from transduce.text.normalization import WORD_MARK

# Scripts that set no space between words: there a term may begin anywhere.
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
_IN_A_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class WordEdges:
    """What each token, by its id, does to the words beside it."""

    is_open_after: tuple[bool, ...]
    """Whether a word may begin right after it without a mark."""
    is_closed_by: tuple[bool, ...]
    """Whether it leaves the word right before it whole."""

    @classmethod
    def of(cls, written: Sequence[bytes], special: SpecialTokens) -> Self:
        """Return the edges of tokens by what each adds to an output; one byte of several is taken for a letter."""
        texts = [token.decode("utf-8", "replace").replace("\ufffd", "a") for token in written]
        is_open_after = [bool(text) and _is_edge(text[-1]) for text in texts]
        is_closed_by = [bool(text) and _is_edge(text[0]) for text in texts]
        is_open_after[special.start] = is_closed_by[special.end] = True
        return cls(tuple(is_open_after), tuple(is_closed_by))

    def without(self, symbols: Iterable[int]) -> Self:
        """Return the edges of an output from which these symbols are dropped, so that they separate nothing."""
        is_open_after, is_closed_by = list(self.is_open_after), list(self.is_closed_by)
        for symbol in symbols:
            is_open_after[symbol] = is_closed_by[symbol] = False
        return type(self)(tuple(is_open_after), tuple(is_closed_by))


def needs_edge(character: str) -> bool:
    """Return whether a term that begins or ends with this character must not go on there within one word."""
    return character.isalnum() and not _SPACELESS.match(character)


def _is_edge(character: str) -> bool:
    if character == WORD_MARK:
        return True
    return not _IN_A_WORD.match(character) and not unicodedata.category(character).startswith("M")
