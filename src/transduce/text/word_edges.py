"""Word boundaries between tokens: which tokens end the word before them, and which let a word begin after them.

A token ends the word before it if it begins with a word mark, punctuation or a placeholder, or if it is the end of the
output. The token `s` does not: it turns `▁Hund` into another word. A word begins with a word mark; it may also begin
without one after punctuation, as in `„Hund“`, or after a placeholder, as in `<b>Hund</b>`.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from transduce.special_tokens import SpecialTokens
from transduce.text.normalization import WORD_MARK

# Scripts without spaces between words, in which a term may begin anywhere.
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
_IN_A_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class WordEdges:
    """For each token id, whether a word may begin after it and whether it ends the word before it."""

    is_open_after: tuple[bool, ...]
    """Whether a word may begin right after the token without a mark."""
    is_closed_by: tuple[bool, ...]
    """Whether the token ends the word right before it, so that the word stays whole."""

    @classmethod
    def of(cls, written: Sequence[bytes], special: SpecialTokens) -> Self:
        """Return the edges of tokens, given the bytes that each writes; a part of a character counts as a letter."""
        texts = [token.decode("utf-8", "replace").replace("\ufffd", "a") for token in written]
        is_open_after = [bool(text) and _is_edge(text[-1]) for text in texts]
        is_closed_by = [bool(text) and _is_edge(text[0]) for text in texts]
        is_open_after[special.start] = is_closed_by[special.end] = True
        return cls(tuple(is_open_after), tuple(is_closed_by))

    def without(self, symbols: Iterable[int]) -> Self:
        """Return the edges for an output from which these symbols are dropped, so that they separate no words."""
        is_open_after, is_closed_by = list(self.is_open_after), list(self.is_closed_by)
        for symbol in symbols:
            is_open_after[symbol] = is_closed_by[symbol] = False
        return type(self)(tuple(is_open_after), tuple(is_closed_by))


def needs_edge(character: str) -> bool:
    """Return whether a term that begins or ends with this character needs a word boundary there."""
    return character.isalnum() and not _SPACELESS.match(character)


def _is_edge(character: str) -> bool:
    if character == WORD_MARK:
        return True
    return not _IN_A_WORD.match(character) and not unicodedata.category(character).startswith("M")
