"""The ids of a vocabulary that transduce learned.

id 0 .. 3        <pad> <unk> <s> </s>
id 4 .. 19       the symbols reserved for placeholders
id 20 .. 275     the 256 bytes, for characters without a piece of their own
id 276 ..        the tags of corpora, such as >>de<<, then the learned pieces

A tag is never cut, and a learned piece never has the form of a tag, because learning does not join signs with letters.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from transduce.errors import ConfigError
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens
from transduce.text.normalization import WORD_MARK, normalize
from transduce.text.placeholders import RESERVED
from transduce.text.word_edges import WordEdges

SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
FIRST_SYMBOL = len(SPECIAL_PIECES)
FIRST_BYTE = FIRST_SYMBOL + len(RESERVED)
FIRST_LEARNED = FIRST_BYTE + 256
SMALLEST_VOCABULARY = FIRST_LEARNED + 2  # the mark ▁ and one letter
LARGEST_VOCABULARY = 1 << 18
_TAG = re.compile(r">>[A-Za-z0-9-]{1,12}<<")
RAREST_CHARACTER = 1e-7  # share of all characters; a rarer one gets no piece and is spelled in bytes
REMEDY = "Take it from a model directory or run that transduce wrote, or leave it out and let transduce learn one."


class LearnedTokenizer:
    """The part of a tokenizer that follows from its learned pieces and its file."""

    has_line_breaks = False

    def __init__(self, learned: Sequence[str], content: bytes) -> None:
        self._content = content
        numbered = [f"⟨{number}⟩" for number in range(len(RESERVED))]
        self._printable = [*SPECIAL_PIECES, *numbered, *map(byte_name, range(256)), *learned]
        self._ids = {piece: FIRST_LEARNED + rank for rank, piece in enumerate(learned)}
        self._ids |= {symbol: FIRST_SYMBOL + number for number, symbol in enumerate(RESERVED)}

    @property
    def special(self) -> SpecialTokens:
        """The ids 0 to 3."""
        return OWN_SPECIAL_TOKENS

    @property
    def symbols(self) -> range:
        """The ids of the symbols for placeholders."""
        return range(FIRST_SYMBOL, FIRST_BYTE)

    @property
    def vocabulary_size(self) -> int:
        """The number of ids."""
        return len(self._printable)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self._content).hexdigest()

    @cached_property
    def word_edges(self) -> WordEdges:
        """The tokens at which words end, and after which words may begin."""
        return WordEdges.of(self._written, self.special)

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return self._content

    def piece(self, token: int) -> str:
        """Return the printable form of an id: `▁word`, `<0x0A>` for a byte, `⟨0⟩` for a symbol."""
        return self._printable[token]

    def written(self, token: int) -> bytes:
        """Return the bytes that an id adds to a text."""
        return self._written[token]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`, normalised, so it has no newline even if bytes spell one."""
        joined = b"".join(map(self._written.__getitem__, ids)).decode("utf-8", "replace")
        return normalize(joined.replace(WORD_MARK, " "))

    @cached_property
    def _written(self) -> list[bytes]:
        raw_bytes = [bytes([value]) for value in range(256)]
        learned = [piece.encode("utf-8") for piece in self._printable[FIRST_LEARNED:]]
        return [b""] * FIRST_SYMBOL + [symbol.encode("utf-8") for symbol in RESERVED] + raw_bytes + learned


def is_tag(piece: str) -> bool:
    """Return whether a piece has the form of a tag, such as >>de<<."""
    return piece.startswith(">>") and _TAG.fullmatch(piece) is not None


def require_possible_size(vocabulary_size: int) -> None:
    """Refuse a vocabulary without room for a letter, or too large for any file."""
    if not SMALLEST_VOCABULARY <= vocabulary_size <= LARGEST_VOCABULARY:
        raise ConfigError(
            f"vocabulary_size = {vocabulary_size} is not possible: {FIRST_LEARNED} ids are special, reserved or bytes. "
            f"Choose from {SMALLEST_VOCABULARY} to {LARGEST_VOCABULARY}; some thousands are usual."
        )


def frequent_characters(frequency: Counter[str], *, most: int) -> list[str]:
    """Return at most `most` characters, the most frequent first, without those rarer than `RAREST_CHARACTER`."""
    enough = frequency.total() * RAREST_CHARACTER
    ranked = sorted(frequency, key=lambda character: (-frequency[character], character))
    return [character for character in ranked[:most] if frequency[character] >= enough]


def byte_ids(piece: str) -> list[int]:
    """Return the ids that spell a piece in its UTF-8 bytes."""
    return [FIRST_BYTE + value for value in piece.encode("utf-8")]


def byte_name(value: int) -> str:
    """Return the printable form of a byte."""
    return f"<0x{value:02X}>"


def span_ends(starts: Sequence[int], *, length: int) -> list[int]:
    """Return the ends of spans that begin at `starts` and cover a text of this length; equal starts have equal ends."""
    ends = [length] * len(starts)
    for index in range(len(starts) - 2, -1, -1):
        ends[index] = ends[index + 1] if starts[index] == starts[index + 1] else starts[index + 1]
    return ends
