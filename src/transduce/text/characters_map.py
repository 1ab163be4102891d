"""The characters map of a sentencepiece model: which strings its normalisation replaces, and by what.

    4 bytes: length of the trie · the trie, a double array (Darts) of 32-bit units · replacements, each ending in NUL

A unit holds a label (its low byte), the offset of its children and whether a key ends here; if so, the unit at the
offset holds the place of the replacement. Byte c of the node whose children begin at b is unit b XOR c, if that unit
has the label c. A walk takes one step for each byte of the text, so a damaged trie can neither loop nor be left.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from transduce.errors import ModelError

_CACHED_WORDS = 1 << 15
_LARGEST_TRIE = 4 << 20  # bytes; that of sentencepiece's nmt_nfkc has 237,000
_LONGEST_CACHED_WORD = 64
_SPACE = 0x20
_LONGEST = 256  # bytes of a key and of a replacement; the longest replacement in sentencepiece.s own maps has 33


class CharactersMap:
    """Replaces, from left to right, the longest key of the map that begins at each position."""

    def __init__(self, content: bytes, *, name: str) -> None:
        length = int.from_bytes(content[:4], "little") if content else 0
        if content and (length % 4 or not 4 <= length <= len(content) - 4):
            raise ModelError(f"{name} is damaged: its characters map has no trie.")
        if length > _LARGEST_TRIE:
            raise ModelError(f"{name} has a characters map of {length:,} bytes; at most {_LARGEST_TRIE:,} are read.")
        units = np.frombuffer(content[4 : 4 + length], dtype="<u4").astype(np.int64)
        self._labels: list[int] = (units & 0x8000_00FF).tolist()
        self._offsets: list[int] = ((units >> 10) << ((units & (1 << 9)) >> 6)).tolist()
        self._ends: list[bool] = (units >> 8 & 1 == 1).tolist()
        self._values: list[int] = (units & 0x7FFF_FFFF).tolist()
        self._replacements, self._name = content[4 + length :], name
        # Words are replaced one by one, with a cache, unless a key may contain a space.
        self._is_by_words = bool(content) and _SPACE not in self._labels
        self._word: Callable[[str], str] = lru_cache(_CACHED_WORDS)(self._replaced)

    def __call__(self, text: str) -> str:
        """Return the text with its replacements."""
        if not self._labels:
            return text
        if not self._is_by_words:
            return self._replaced(text)
        return " ".join(
            [
                self._word(word) if len(word) <= _LONGEST_CACHED_WORD else self._replaced(word)
                for word in text.split(" ")
            ]
        )

    def _replaced(self, text: str) -> str:
        content, result, position = text.encode("utf-8"), bytearray(), 0
        while position < len(content):
            end, replacement = self._longest(content, position)
            if replacement is None:
                end = position + 1
                while end < len(content) and content[end] & 0xC0 == 0x80:  # the other bytes of the character
                    end += 1
                replacement = content[position:end]
            result += replacement
            position = end
        try:
            return result.decode("utf-8")
        except UnicodeDecodeError:
            raise self._damaged() from None

    def _longest(self, content: bytes, position: int) -> tuple[int, bytes | None]:
        """Return where the longest key at `position` ends and its replacement, or None if no key begins there."""
        labels, size = self._labels, len(self._labels)
        base, start, end = self._offsets[0], -1, position
        for place in range(position, len(content)):
            if place == position + _LONGEST:  # only a trie with a loop leads so far, and each position would
                raise self._damaged()
            unit = base ^ content[place]
            if unit >= size or labels[unit] != content[place]:
                break
            base = unit ^ self._offsets[unit]
            if self._ends[unit] and base < size:
                start, end = self._values[base], place + 1
        if start < 0:
            return end, None
        close = self._replacements.find(b"\0", start, start + _LONGEST)
        if close < 0:
            raise self._damaged()
        return end, self._replacements[start:close]

    def _damaged(self) -> ModelError:
        return ModelError(f"{self._name} is damaged: its characters map holds no replacements where it should.")
