"""Tokens with their share of the text, and the word that they belong to.

For a given text the tokenizer knows the spans. A translation is a sequence of ids that search found, which may differ
from how the tokenizer would cut its text: its spans are computed from the ids' bytes, through the
steps that decode them.

A word begins at the tokenizer's mark, at a placeholder, where punctuation begins or ends, and with each piece of a
script that is written without spaces.
"""

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transduce.text.normalization import WORD_MARK, normalize_with_starts
from transduce.text.placeholders import RESERVED, Protected, restore
from transduce.text.tokenizer import EOS, Tokenizer
from transduce.text.vocabulary import FIRST_BYTE, FIRST_LEARNED

_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
_PUNCTUATION = re.compile(r"(?:[^\w\s]|_)+")


@dataclass(frozen=True)
class Token:
    """A token of the source or of the translation; `word` is None for a special token."""

    id: int
    text: str
    start: int
    end: int
    word: int | None
    log_probability: float | None = None
    """Given the source and all tokens before it, natural logarithm; None in the source."""


def tokens_of_text(tokenizer: Tokenizer, protected: Protected, *, original: str) -> tuple[Token, ...]:
    """Return the tokens of a text that was given, its end token included, with spans in `original`."""
    pieces, borders = tokenizer.pieces(protected.text), protected.boundaries()
    ids = [*(piece.id for piece in pieces), EOS]
    spans = [(borders[piece.start], borders[piece.end]) for piece in pieces] + [(len(original), len(original))]
    return _assembled(tokenizer, ids, spans, originals=protected.originals)


def tokens_of_ids(
    tokenizer: Tokenizer, ids: Sequence[int], *, originals: Sequence[str]
) -> tuple[str, tuple[Token, ...]]:
    """Return the text that `ids` stand for, placeholders put back, and the tokens with their spans in it."""
    written, character_spans = _decoded([_bytes_of(tokenizer, token) for token in ids])
    normal, starts = normalize_with_starts(written.replace(WORD_MARK, " "))
    normal, starts = _without_foreign(normal, starts, placeholders=len(originals))
    borders = Protected(normal, tuple(originals)).boundaries()
    spans = [(borders[bisect_left(starts, start)], borders[bisect_left(starts, end)]) for start, end in character_spans]
    return restore(normal, originals), _assembled(tokenizer, ids, spans, originals=originals)


def name_of(tokenizer: Tokenizer, token: int, *, originals: Sequence[str] = ()) -> str:
    """Return what a token is called: its piece, what a placeholder stands for, or <EOS>."""
    if token == EOS:
        return "<EOS>"
    number = token - EOS - 1
    return originals[number] if 0 <= number < len(originals) else tokenizer.piece(token)


def words_of(pieces: Iterable[tuple[int, str]]) -> list[int | None]:
    """Return which word each of (id, piece) belongs to, None for special tokens."""
    words: list[int | None] = []
    word, before = -1, ""
    for token, piece in pieces:
        if token <= EOS:
            words.append(None)
            before = ""
            continue
        kind = _kind_of(token, piece)
        # A mark that stands alone is the beginning of the word after it.
        continues = before == "mark" or (kind == before and kind in ("letters", "punctuation"))
        if piece.startswith(WORD_MARK) or not continues:
            word += 1
        words.append(word)
        before = kind
    return words


def _kind_of(token: int, piece: str) -> str:
    if token < FIRST_BYTE:
        return "placeholder"
    body = piece.removeprefix(WORD_MARK)
    if token < FIRST_LEARNED:
        return "letters"
    if not body:
        return "mark"
    if _WITHOUT_SPACES.match(body):
        return "unspaced"
    return "punctuation" if _PUNCTUATION.fullmatch(body) else "letters"


def _assembled(
    tokenizer: Tokenizer, ids: Sequence[int], spans: Sequence[tuple[int, int]], *, originals: Sequence[str]
) -> tuple[Token, ...]:
    words = words_of((token, tokenizer.piece(token)) for token in ids)
    return tuple(
        Token(token, name_of(tokenizer, token, originals=originals), start, end, word)
        for token, (start, end), word in zip(ids, spans, words, strict=True)
    )


def _without_foreign(normal: str, starts: list[int], *, placeholders: int) -> tuple[str, list[int]]:
    """Leave out symbols that stand for nothing, and a space where that leaves two, as `restore` does."""
    foreign = RESERVED[placeholders:]
    if not any(symbol in normal for symbol in foreign):
        return normal, starts
    kept: list[tuple[str, int]] = []
    for character, start in zip(normal, starts, strict=True):
        is_double = character == " " and (not kept or kept[-1][0] == " ")
        if character not in foreign and not is_double:
            kept.append((character, start))
    if kept and kept[-1][0] == " ":
        kept.pop()
    return "".join(character for character, _ in kept), [start for _, start in kept]


def _bytes_of(tokenizer: Tokenizer, token: int) -> bytes:
    if token <= EOS:
        return b""
    if token < FIRST_BYTE:
        return RESERVED[token - EOS - 1].encode("utf-8")
    if token < FIRST_LEARNED:
        return bytes([token - FIRST_BYTE])
    return tokenizer.piece(token).encode("utf-8")


def _decoded(shares: Sequence[bytes]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of byte strings that follow each other, and the characters that each has a share in."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    written, spans, is_cut = "", list[tuple[int, int]](), list[bool]()
    for number, share in enumerate(shares):
        before = len(written)
        written += decoder.decode(share, final=number == len(shares) - 1)
        spans.append((before, len(written)))
        is_cut.append(bool(decoder.getstate()[0]))
    for number in reversed(range(len(spans) - 1)):  # bytes that end within a character have a share in all of it
        if is_cut[number]:
            spans[number] = (spans[number][0], max(spans[number][1], spans[number + 1][1]))
    return written, spans
