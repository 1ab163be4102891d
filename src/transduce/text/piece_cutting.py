"""Cutting text into the pieces of a sentencepiece model that another program wrote: Unigram or byte-pair encoding.

Unigram (Kudo 2018) chooses the pieces with the largest sum of scores, by dynamic programming over the positions of the
text. sentencepiece adds scores in float32 from the start of the text, so the rounding of a sum decides between
cuttings of equal score, such as "aa" "a" and "a" "aa". We cut words one by one, with a cache, and measure how much
better the best cutting of a word is than the second best; only if that is within the rounding error, the whole text
is cut with sentencepiece's own order of additions. Byte-pair encoding makes the join of the best score, of equals the
leftmost.

Departure: byte-pair encoding cuts a word of more than 512 characters, which bounds the work for each character.
"""

import re
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache

from transduce.text.bpe_dropout import Merger
from transduce.text.characters_map import CharactersMap
from transduce.text.normalization import WORD_MARK
from transduce.text.piece_file import PieceFile

LONGEST_WORD = 512  # characters, for byte-pair encoding
_CACHED_WORDS = 1 << 16
_LONGEST_CACHED_WORD = 64
_UNKNOWN_PENALTY = 10.0
_ROUNDING = 4e-6  # relative error of a sum of scores in float32, with room to spare
_SURROGATE = re.compile("[\ud800-\udfff]")

Cut = tuple[tuple[str, ...], float, float]
"""The pieces of a word, how much better they are than the second best, and the size of their score."""


class PieceCutter:
    """Normalises text and cuts it into pieces, as sentencepiece does with the same file."""

    def __init__(self, file: PieceFile, *, name: str) -> None:
        self.file = file
        self._replaced = CharactersMap(file.characters_map, name=name)
        longest_first = sorted(file.symbols, key=len, reverse=True)
        self._symbols = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
        self._by_words = not any(WORD_MARK in piece[1:] for piece in file.scores)
        self._longest: dict[str, int] = {}
        for piece in file.scores:
            self._longest[piece[0]] = max(len(piece), self._longest.get(piece[0], 0))
        self._unknown = array("f", [file.lowest_score - _UNKNOWN_PENALTY])[0]
        by_score = {score: rank for rank, score in enumerate(sorted(set(file.scores.values()), reverse=True))}
        self._merger = Merger({piece: by_score[score] for piece, score in file.scores.items()})
        cut = self._merged if file.method == "bpe" else self._best
        self._cut: Callable[[str], Cut] = cut
        self._cut_short: Callable[[str], Cut] = lru_cache(_CACHED_WORDS)(cut)

    def normalize(self, text: str, *, is_inside: bool = False) -> str:
        """Return the text that is cut: characters replaced, spaces as marks, a mark in front unless `is_inside`."""
        if not text:
            return ""
        text = _SURROGATE.sub("\ufffd", text)
        if self._symbols is None:
            text = self._replaced(text)
        else:
            parts = self._symbols.split(text)
            text = "".join(part if n % 2 else self._replaced(part) for n, part in enumerate(parts))
        if self.file.removes_spaces:
            text = re.sub("  +", " ", text).strip(" ")
            if not text:
                return ""
        normal = (WORD_MARK if self.file.adds_prefix and not is_inside else "") + text.replace(" ", WORD_MARK)
        return normal.rstrip(WORD_MARK) if self.file.removes_spaces else normal

    def pieces(self, text: str, *, is_inside: bool = False) -> list[str]:
        """Return the pieces of a text; characters without a piece follow each other in one string, which is none."""
        normal = self.normalize(text, is_inside=is_inside)
        if not normal:
            return []
        if not self._by_words:
            return self._joined(self._cut(normal)[0])
        cuts = [self._cut_short(w) if len(w) <= _LONGEST_CACHED_WORD else self._cut(w) for w in _words(normal)]
        if min(cut[1] for cut in cuts) <= _ROUNDING * (1.0 + sum(cut[2] for cut in cuts)) and len(cuts) > 1:
            return self._joined(self._cut(normal)[0])
        return self._joined(tuple(piece for cut in cuts for piece in cut[0]))

    def _joined(self, pieces: tuple[str, ...]) -> list[str]:
        """Join the unknown characters that follow each other, or spell each in bytes."""
        known, result, was_known = self.file.scores, list[str](), True
        for piece in pieces:
            is_known = piece in known
            if is_known or (was_known and not self.file.has_bytes):
                result.append(piece)
            elif self.file.has_bytes:
                result.extend(f"<0x{byte:02X}>" for byte in piece.encode("utf-8"))
            else:
                result[-1] += piece
            was_known = is_known
        return result

    def _best(self, text: str) -> Cut:
        """Return the pieces of the largest sum of scores; sums are rounded to float32 as sentencepiece rounds them."""
        size, score_of = len(text), self.file.scores.get
        best, second, origin = array("f", bytes(4 * (size + 1))), [float("-inf")] * (size + 1), [-1] * (size + 1)
        rounded = array("f", [0.0])
        for start in range(size):
            here, runner = best[start], second[start]
            has_single = False
            for end in range(start + 1, min(start + self._longest.get(text[start], 1), size) + 1):
                score = score_of(text[start:end])
                if score is None:
                    if has_single or end > start + 1:
                        continue
                    score = self._unknown
                has_single = True
                rounded[0] = score + here
                candidate = rounded[0]
                if origin[end] < 0 or candidate > best[end]:
                    if origin[end] >= 0:
                        second[end] = max(second[end], best[end])
                    best[end], origin[end] = candidate, start
                else:
                    second[end] = max(second[end], candidate)
                second[end] = max(second[end], runner + score)
        pieces: list[str] = []
        end = size
        while end:
            pieces.append(text[origin[end] : end])
            end = origin[end]
        return tuple(reversed(pieces)), best[size] - second[size], abs(best[size])

    def _merged(self, text: str) -> Cut:
        pieces: list[str] = []
        for n, part in enumerate(self._symbols.split(text) if self._symbols else (text,)):
            if n % 2:
                pieces.append(part)
                continue
            for start in range(0, len(part), LONGEST_WORD):
                pieces += self._merger.best(part[start : start + LONGEST_WORD])
        return tuple(pieces), float("inf"), 0.0


def _words(normal: str) -> Iterator[str]:
    """Yield the words of a text with their marks in front."""
    first, *others = normal.split(WORD_MARK)
    if first:
        yield first
    for word in others:
        yield WORD_MARK + word
