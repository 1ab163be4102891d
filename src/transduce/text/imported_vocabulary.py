"""The vocabulary of a model that another program trained, and the part of its tokenizer that follows from that."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from transduce.errors import ModelError
from transduce.special_tokens import SpecialTokens
from transduce.text.vocabulary import LARGEST_VOCABULARY
from transduce.text.word_edges import WordEdges


class WordPieces(BaseModel, frozen=True, extra="forbid"):
    """How BERT's tokenizer normalises words before it cuts them."""

    lowercase: bool
    strip_accents: bool
    chinese_characters: bool
    """Whether each Chinese character is a word."""


class ImportedVocabulary(BaseModel):
    """The content of the tokenizer's file but for the sentencepiece model."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    pieces: tuple[str, ...] = Field(min_length=5, max_length=LARGEST_VOCABULARY)
    """The text of each id."""
    padding: int
    unknown: int
    start: int
    end: int
    tag: str | None = None
    """The token in front of a source that has none of its own."""
    codes: tuple[tuple[str, str], ...] | None = None
    """The pairs that subword-nmt joins, the best first; None if a sentencepiece model cuts text."""
    moses: str | None = None
    """The language of Moses' tokenizer, if the model was trained on its output."""
    word_pieces: WordPieces | None = None
    """The normalisation of WordPiece, if that cuts text."""

    @model_validator(mode="after")
    def ids_exist(self) -> Self:
        """Refuse special ids outside the vocabulary, pieces that are there twice, and a tag without an id."""
        own = (self.padding, self.unknown, self.start, self.end)
        if not all(0 <= token < len(self.pieces) for token in own):
            raise ValueError("a special token is outside the vocabulary")
        if len(set(self.pieces)) != len(self.pieces):
            raise ValueError("a piece is there twice")
        if self.tag is not None and self.tag not in self.pieces:
            raise ValueError(f"the tag {self.tag} is not in the vocabulary")
        return self

    @classmethod
    def read(cls, content: bytes, *, name: str) -> Self:
        """Return the vocabulary in a file's JSON; raise ModelError, naming `name`, for any other content."""
        try:
            return cls.model_validate_json(content)
        except ValidationError as fault:
            first = fault.errors()[0]["msg"]
            raise ModelError(f"{name} is damaged: {first:.200}. Import the model again.") from None


class ForeignTokenizer:
    """The part of an imported tokenizer that follows from its vocabulary and its file."""

    symbols: Sequence[int] = ()

    def __init__(self, vocabulary: ImportedVocabulary, content: bytes) -> None:
        self.vocabulary, self._content = vocabulary, content
        self._ids = {piece: token for token, piece in enumerate(vocabulary.pieces)}
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(vocabulary.codes or ())))}
        own = vocabulary
        self.special = SpecialTokens(padding=own.padding, unknown=own.unknown, start=own.start, end=own.end)

    @property
    def vocabulary_size(self) -> int:
        """The number of ids."""
        return len(self.vocabulary.pieces)

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
        """Return the piece of an id."""
        return self.vocabulary.pieces[token]

    def written(self, token: int) -> bytes:
        """Return the bytes that an id adds to a text."""
        return self._written[token]

    @property
    @abstractmethod
    def _written(self) -> list[bytes]:
        """The bytes of each id."""


def join_pairs(pieces: list[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """Join the pair of the lowest rank wherever it is, until no pair has a rank."""
    none = len(ranks)
    while len(pieces) > 1:
        best = min(pairwise(pieces), key=lambda pair: ranks.get(pair, none))
        if best not in ranks:
            break
        joined: list[str] = []
        for piece in pieces:
            if joined and (joined[-1], piece) == best:
                joined[-1] += piece
            else:
                joined.append(piece)
        pieces = joined
    return pieces
