"""Byte-level BPE, the tokenizer of GPT-2 (Radford et al. 2019), for models that another program trained.

A text is cut into words, numbers and signs, each with the space before it. The UTF-8 bytes of each part are pieces, and
the pair of pieces that was learned first is joined until no pair was learned. A piece is written with one printable
character for each byte: the byte's own where it is printable, else the next one from U+0100 on, so that a space is Ġ.

Nothing is normalised: decode(encode(x)) = x for every text without lone surrogates. A line break is a piece.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate

from transduce.errors import ModelError
from transduce.text.imported_vocabulary import ForeignTokenizer, ImportedVocabulary, join_pairs
from transduce.text.tokenizer import TextPiece, TokenizerKind
from transduce.text.vocabulary import span_ends

HEADER = b"transduce byte pieces 1\n"
_PRINTABLE = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHERS = tuple(sorted({*range(256)} - {*_PRINTABLE}))
BYTE_NAMES = {**{value: chr(value) for value in _PRINTABLE}, **{value: chr(256 + n) for n, value in enumerate(_OTHERS)}}
"""The printable character of each byte."""
_VALUES = {name: value for value, name in BYTE_NAMES.items()}
_CONTRACTION = re.compile(r"'(?:s|t|re|ve|m|ll|d)")
# Of a text in which each letter is L, each number N, each white space but the space S and every other sign O. White
# space before a word leaves its last character to the word, which takes it if it is a space.
_PART = re.compile(r" ?L+| ?N+| ?O+|[ S]+(?![LNO])|[ S]+")
_SPACES = frozenset("\t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(n) for n in range(0x2000, 0x200B)}


class ByteTokenizer(ForeignTokenizer):
    """A vocabulary of byte sequences, with the pairs that are joined."""

    kind: TokenizerKind = "byte_pieces"
    has_line_breaks = True

    def __init__(self, vocabulary: ImportedVocabulary, *, name: str = "tokenizer.model") -> None:
        content = json.dumps(vocabulary.model_dump(mode="json", exclude_none=True)).encode()
        super().__init__(vocabulary, HEADER + content + b"\n")
        joined = {"".join(pair) for pair in self._ranks}
        missing = next((piece for piece in sorted({*_VALUES, *joined}) if piece not in self._ids), None)
        if missing is not None:
            raise ModelError(f"{name} is damaged: its pieces join to {missing[:40]!r}, which has no id.")
        self._joined = lru_cache(1 << 16)(self._join)

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "tokenizer.model") -> "ByteTokenizer":
        """Return the tokenizer that `to_bytes` wrote; raise ModelError, naming `name`, for any other content."""
        return cls(ImportedVocabulary.read(content.removeprefix(HEADER), name=name), name=name)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` as it is."""
        return [token for part in _parts(text) for token in self._joined(part)]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [self.encode(text) for text in texts]

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text`, which are the same inside a text as at its beginning."""
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return b"".join(map(self._written.__getitem__, ids)).decode("utf-8", "replace")

    def pieces(self, text: str) -> list[TextPiece]:
        """Return the tokens of `text` with their spans; a token inside a character has that character's span."""
        ids = self.encode(text)
        characters = [place for place, character in enumerate(text) for _ in character.encode("utf-8", "replace")]
        places = accumulate((len(self._written[token]) for token in ids[:-1]), initial=0)
        starts = [characters[place] for place in places] if ids else []
        ends = span_ends(starts, length=len(text))
        return [TextPiece(token, self.piece(token), *span) for token, *span in zip(ids, starts, ends, strict=True)]

    def _join(self, part: str) -> tuple[int, ...]:
        pieces = join_pairs([BYTE_NAMES[value] for value in part.encode("utf-8", "replace")], self._ranks)
        return tuple(self._ids[piece] for piece in pieces)

    @cached_property
    def _written(self) -> list[bytes]:
        silent = {*self.special.ids}
        return [
            b"" if token in silent else bytes(_VALUES[name] for name in piece if name in _VALUES)
            for token, piece in enumerate(self.vocabulary.pieces)
        ]


def _parts(text: str) -> list[str]:
    """Cut a text into words, numbers and signs, each with the space before it, and white space."""
    classes, found, place = "".join(map(_class, text)), list[str](), 0
    while place < len(text):
        match = _CONTRACTION.match(text, place) or _PART.match(classes, place)
        assert match is not None, "every class is in one of the alternatives"
        found.append(text[place : match.end()])
        place = match.end()
    return found


@lru_cache(1 << 16)
def _class(character: str) -> str:
    if character == " ":
        return " "
    if character in _SPACES:
        return "S"
    return {"L": "L", "N": "N"}.get(unicodedata.category(character)[0], "O")
