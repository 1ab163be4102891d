"""Tokenizers of models that another program trained: its vocabulary, and its way to cut text into pieces.

Two ways: a sentencepiece model (`piece_cutting.py`), or the codes of subword-nmt, which join the characters of a word
pair by pair and mark every piece but the last of a word by `@@`; text may go through Moses' tokenizer before. The
vocabulary gives the ids: pieces outside it are the unknown token. The tag of a language, such as >>deu<<, is a token of
its own at the beginning of a source: that of the text, or else `tag`.

The file is `HEADER`, a line of JSON, and the sentencepiece model as it was imported. It is checked when it is read.

Departures from the laws of `tokenizer.py`: text that the model cannot spell is lost, as in its own program, and with
Moses' tokenizer `decode` also removes the spaces that tokenization added.
"""

import json
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from transduce.text.imported_vocabulary import ForeignTokenizer, ImportedVocabulary, join_pairs
from transduce.text.normalization import WORD_MARK, normalize
from transduce.text.piece_cutting import LONGEST_WORD, PieceCutter
from transduce.text.piece_file import read_piece_file
from transduce.text.tokenizer import TextPiece, TokenizerKind
from transduce.text.vocabulary import span_ends

HEADER = b"transduce imported 1\n"
TAG = re.compile(r">>[A-Za-z][A-Za-z0-9_-]{0,30}<<")
_CONTROL = ("<s>", "</s>", "<unk>", "<pad>", "<blank>")
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_CONTINUES, _END_OF_WORD = "@@", "</w>"


class ImportedTokenizer(ForeignTokenizer):
    """A vocabulary of another program, with the pieces that its sentencepiece model or its codes make."""

    kind: TokenizerKind = "imported"
    has_line_breaks = False

    def __init__(
        self, vocabulary: ImportedVocabulary, piece_file: bytes = b"", *, name: str = "tokenizer.model"
    ) -> None:
        keys: dict[str, Any] = vocabulary.model_dump(mode="json", exclude_none=True)
        super().__init__(vocabulary, HEADER + json.dumps(keys, ensure_ascii=True).encode() + b"\n" + piece_file)
        self.piece_file = piece_file
        self._tags = {piece for piece in vocabulary.pieces if TAG.fullmatch(piece)}
        self._cutter = None
        if vocabulary.codes is None:
            self._cutter = PieceCutter(read_piece_file(piece_file, name=name), name=name)
        self._coded = lru_cache(1 << 16)(self._joined)

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "tokenizer.model") -> "ImportedTokenizer":
        """Return the tokenizer that `to_bytes` wrote; raise ModelError, naming `name`, for any other content."""
        line, _, piece_file = content.removeprefix(HEADER).partition(b"\n")
        return cls(ImportedVocabulary.read(line, name=name), piece_file, name=name)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, with the tag of a language in front if the model needs one."""
        return [token for token, _ in self._cut(text)]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [self.encode(text) for text in texts]

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text` as the continuation of a text: no space and no tag in front."""
        return [self._ids.get(piece, self.vocabulary.unknown) for piece in self._pieces(text, is_inside=True)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`, normalised."""
        text = b"".join(map(self._written.__getitem__, ids)).decode("utf-8", "replace").replace(WORD_MARK, " ")
        if self.vocabulary.moses is not None:
            text = self._moses[1].detokenize(text.split())
        return normalize(text)

    def pieces(self, text: str) -> list[TextPiece]:
        """Return the tokens of `text`; each begins where its letters are found next in the text.

        Normalisation may have changed the letters; a piece that is not found begins one character after the one before.
        """
        found = self._cut(text)
        starts: list[int] = []
        position = 0
        for _, piece in found:
            body = piece.removesuffix(_CONTINUES if self._cutter is None else "").replace(WORD_MARK, "")
            place = text.find(body, position, position + len(body) + 8) if body else -1
            starts.append(min(place if place >= 0 else position, max(len(text) - 1, 0)) if starts else 0)
            position = max(position, starts[-1]) + (len(body) if place >= 0 else min(len(body), 1))
        ends = span_ends(starts, length=len(text))
        return [
            TextPiece(token, self.piece(token), *span) for (token, _), *span in zip(found, starts, ends, strict=True)
        ]

    def _cut(self, text: str) -> list[tuple[int, str]]:
        """Return the id of each piece with its letters, which differ from the id's own if it is unknown."""
        head = TAG.match(text.lstrip()) if self._tags else None
        tag = self.vocabulary.tag
        if head is not None and head[0] in self._tags:
            tag, text = head[0], text.lstrip()[head.end() :]
        pieces = self._pieces(text)
        if tag is not None and pieces:
            pieces.insert(0, tag)
        unknown = self.vocabulary.unknown
        return [(self._ids.get(piece, unknown), piece) for piece in pieces]

    def _pieces(self, text: str, *, is_inside: bool = False) -> list[str]:
        if self._cutter is not None:
            return self._cutter.pieces(text, is_inside=is_inside)
        words = normalize(text)
        if self.vocabulary.moses is not None and words:
            words = self._moses[0].tokenize(words, return_str=True, aggressive_dash_splits=True)
        return [piece for word in words.split() for piece in self._coded(word)]

    def _joined(self, word: str) -> tuple[str, ...]:
        """Return the pieces of a word by codes: the best pair is joined wherever it is, until no pair has a code."""
        word = word[:LONGEST_WORD]
        parts = join_pairs([*word[:-1], word[-1] + _END_OF_WORD], self._ranks)
        last = parts[-1].removesuffix(_END_OF_WORD)
        return (*(part + _CONTINUES for part in parts[:-1]), *((last,) if last else ()))

    @cached_property
    def _moses(self) -> tuple[Any, Any]:
        from sacremoses import MosesDetokenizer, MosesTokenizer

        language = (self.vocabulary.moses or "en").partition("-")[0]
        return MosesTokenizer(language), MosesDetokenizer(language)

    @cached_property
    def _written(self) -> list[bytes]:
        control = {*_CONTROL, *self._tags, *(self._cutter.file.control if self._cutter else ())}
        silent = {*self.special.ids, *(self._ids[piece] for piece in control if piece in self._ids)}
        return [b"" if token in silent else self._text(piece) for token, piece in enumerate(self.vocabulary.pieces)]

    def _text(self, piece: str) -> bytes:
        if self._cutter is None:
            is_inner = piece.endswith(_CONTINUES)
            return (piece.removesuffix(_CONTINUES) if is_inner else piece + WORD_MARK).encode("utf-8", "replace")
        if self._cutter.file.has_bytes and _BYTE.fullmatch(piece):
            return bytes([int(piece[3:5], 16)])
        return piece.encode("utf-8", "replace")
