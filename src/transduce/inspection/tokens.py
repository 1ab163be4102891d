"""Tokens with their spans in the text and the words that they belong to.

For a given text the tokenizer returns the spans. A translation is a sequence of ids that search found, which may differ
from the tokenizer's ids for the same text, so its spans are computed from the bytes of the ids, by following the
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
from transduce.text.tokenizer import Tokenizer

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


def tokens_of_text(
    tokenizer: Tokenizer, protected: Protected, *, original: str, has_end: bool = True
) -> tuple[Token, ...]:
    """Return the tokens of a given text with spans in `original`, and its end token unless it has none."""
    pieces, borders = tokenizer.pieces(protected.text), protected.boundaries()
    ids = [piece.id for piece in pieces]
    spans = [(borders[piece.start], borders[piece.end]) for piece in pieces]
    if has_end:
        ids.append(tokenizer.special.end)
        spans.append((len(original), len(original)))
    return _assembled(tokenizer, ids, spans, originals=protected.originals)


def tokens_of_ids(
    tokenizer: Tokenizer, ids: Sequence[int], *, originals: Sequence[str]
) -> tuple[str, tuple[Token, ...]]:
    """Return the text of `ids` with its placeholders restored, and the tokens with their spans in it."""
    written, character_spans = _decoded([tokenizer.written(token) for token in ids])
    normal, starts = normalize_with_starts(written.replace(WORD_MARK, " "))
    normal, starts = _without_foreign(normal, starts, placeholders=len(originals))
    borders = Protected(normal, tuple(originals)).boundaries()
    spans = [(borders[bisect_left(starts, start)], borders[bisect_left(starts, end)]) for start, end in character_spans]
    return restore(normal, originals), _assembled(tokenizer, ids, spans, originals=originals)


def name_of(tokenizer: Tokenizer, token: int, *, originals: Sequence[str] = ()) -> str:
    """Return the name of a token: its piece, the original of a placeholder, or <EOS>."""
    if token == tokenizer.special.end:
        return "<EOS>"
    named = dict(zip(tokenizer.symbols, originals, strict=False))
    return named.get(token) or _readable(tokenizer, token) or tokenizer.piece(token)


def _readable(tokenizer: Tokenizer, token: int) -> str | None:
    """Return what GPT-2's token Ġthe writes, with the mark for its space: ▁the; None for a part of a character."""
    if not tokenizer.has_line_breaks:
        return None
    text = tokenizer.written(token).decode("utf-8", "replace")
    return text.replace(" ", WORD_MARK) if text.isprintable() and "\ufffd" not in text else None


def words_of(tokenizer: Tokenizer, ids: Iterable[int]) -> list[int | None]:
    """Return which word each token belongs to, None for special tokens."""
    words: list[int | None] = []
    word, before = -1, ""
    for token in ids:
        written = tokenizer.written(token).replace(b" ", WORD_MARK.encode())
        if not written:
            words.append(None)
            before = ""
            continue
        kind = "placeholder" if token in tokenizer.symbols else _kind_of(written)
        # A token that is only a mark begins the word after it.
        continues = before == "mark" or (kind == before and kind in ("letters", "punctuation"))
        if written.startswith(WORD_MARK.encode()) or not continues:
            word += 1
        words.append(word)
        before = kind
    return words


def _kind_of(written: bytes) -> str:
    try:
        body = written.decode("utf-8").removeprefix(WORD_MARK)
    except UnicodeDecodeError:  # a part of a character
        return "letters"
    if not body.strip():
        return "mark"
    if _WITHOUT_SPACES.match(body):
        return "unspaced"
    return "punctuation" if _PUNCTUATION.fullmatch(body) else "letters"


def _assembled(
    tokenizer: Tokenizer, ids: Sequence[int], spans: Sequence[tuple[int, int]], *, originals: Sequence[str]
) -> tuple[Token, ...]:
    words = words_of(tokenizer, ids)
    return tuple(
        Token(token, name_of(tokenizer, token, originals=originals), start, end, word)
        for token, (start, end), word in zip(ids, spans, words, strict=True)
    )


def _without_foreign(normal: str, starts: list[int], *, placeholders: int) -> tuple[str, list[int]]:
    """Remove symbols without an original, and a space if that leaves two in a row, as `restore` does."""
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


def _decoded(shares: Sequence[bytes]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of consecutive byte strings, and the span of the characters to which each contributes."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    written, spans, is_cut = "", list[tuple[int, int]](), list[bool]()
    for number, share in enumerate(shares):
        before = len(written)
        written += decoder.decode(share, final=number == len(shares) - 1)
        spans.append((before, len(written)))
        is_cut.append(bool(decoder.getstate()[0]))
    for number in reversed(range(len(spans) - 1)):  # a byte string that ends within a character spans all of it
        if is_cut[number]:
            spans[number] = (spans[number][0], max(spans[number][1], spans[number + 1][1]))
    return written, spans
