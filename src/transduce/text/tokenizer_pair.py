"""The two tokenizers of a model, one for its sources and one for its targets; they may be the same object.

A target always ends in the end token. A source ends in it if `source_end` is True; some models were trained without.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from transduce.errors import ModelError
from transduce.special_tokens import SpecialTokens
from transduce.text.placeholders import Protected, ProtectedPair, protect, protect_pair
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_files import read_tokenizer


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of a model's sources and targets."""

    source: Tokenizer
    target: Tokenizer
    source_end: bool = True
    """Whether a source ends in the end token."""
    source_tag: str | None = None
    """A mark such as >>de<< before every source, for a model that translates into several languages."""

    def __post_init__(self) -> None:
        """Refuse two vocabularies that pad with different ids: a network has one padding id."""
        own, other = self.target.special.padding, self.source.special.padding
        if own != other:
            raise ModelError(
                f"The padding token has id {other} in the source vocabulary and {own} in the target vocabulary. "
                "Give both vocabularies the same padding id."
            )

    @classmethod
    def shared(cls, tokenizer: Tokenizer, *, source_end: bool = True) -> "TokenizerPair":
        """Return a pair with one tokenizer for both sides."""
        return cls(tokenizer, tokenizer, source_end)

    @classmethod
    def read(cls, path: Path, *, source: Path | None = None, source_end: bool = True) -> "TokenizerPair":
        """Read the tokenizer at `path`, and the sources' own tokenizer at `source` if that is given."""
        target = read_tokenizer(path)
        return cls(target if source is None else read_tokenizer(source), target, source_end)

    @property
    def is_shared(self) -> bool:
        """Whether source and target have one tokenizer."""
        return self.source is self.target

    @cached_property
    def has_one_vocabulary(self) -> bool:
        """Whether an id is the same piece on both sides; two tokenizers may cut text differently and share ids."""
        source, target = self.source, self.target
        return self.is_shared or (
            source.vocabulary_size == target.vocabulary_size
            and all(source.piece(token) == target.piece(token) for token in range(target.vocabulary_size))
        )

    @property
    def vocabulary_size(self) -> int:
        """The number of ids of the targets."""
        return self.target.vocabulary_size

    @property
    def source_vocabulary_size(self) -> int | None:
        """The number of ids of the sources if these have a vocabulary of their own."""
        return None if self.has_one_vocabulary else self.source.vocabulary_size

    @property
    def special(self) -> SpecialTokens:
        """The special tokens of the targets; padding is that of the sources too."""
        return self.target.special

    @property
    def has_symbols(self) -> bool:
        """Whether both vocabularies have symbols for placeholders."""
        return bool(self.source.symbols and self.target.symbols)

    @cached_property
    def fingerprint(self) -> str:
        """A hash that is equal for pairs that encode alike; a shared tokenizer's own if sources have ends."""
        if self.is_shared and self.source_end and self.source_tag is None:
            return self.target.fingerprint
        parts = f"{self.source.fingerprint} {self.target.fingerprint} {self.source_end}"
        parts += "" if self.source_tag is None else f" {self.source_tag}"
        return hashlib.sha256(parts.encode()).hexdigest()

    def reversed(self) -> "TokenizerPair":
        """Return the tokenizers of the opposite direction; sources then end in the end token, as targets do."""
        return TokenizerPair(self.target, self.source)

    def protect(self, text: str) -> Protected:
        """Replace the placeholders of a source by symbols, if the vocabularies have symbols."""
        return protect(text, has_symbols=self.has_symbols)

    def protect_pair(self, source: str, target: str) -> ProtectedPair:
        """Replace the placeholders that both texts have by symbols, if the vocabularies have symbols."""
        return protect_pair(source, target) if self.has_symbols else ProtectedPair(source, target, ())

    def encode_source(self, text: str) -> list[int]:
        """Return the ids of a source, with its end token if sources have one."""
        return self.encode_sources([text])[0]

    def encode_sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each source, with its end token if sources have one."""
        tagged = texts if self.source_tag is None else [f"{self.source_tag} {text}" for text in texts]
        return [self.end_source(ids) for ids in self.source.encode_all(tagged)]

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each target with its end token."""
        return [self.end_target(ids) for ids in self.target.encode_all(texts)]

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Return the ids of pairs as training and search see them, with symbols for shared placeholders."""
        protected = [self.protect_pair(source, target) for source, target in pairs]
        sources = self.encode_sources([pair.source for pair in protected])
        return list(zip(sources, self.encode_targets([pair.target for pair in protected]), strict=True))

    def end_source(self, ids: Sequence[int]) -> list[int]:
        """Add the end token to a source if sources have one."""
        return [*ids, self.source.special.end] if self.source_end else list(ids)

    def end_target(self, ids: Sequence[int]) -> list[int]:
        """Add the end token to a target."""
        return [*ids, self.target.special.end]
