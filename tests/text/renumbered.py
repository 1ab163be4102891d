"""A tokenizer with the special ids of imported models: end 0, unknown 1, and the last id for both padding and start."""

from collections.abc import Sequence
from functools import cached_property

from transduce.special_tokens import SpecialTokens
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer import TextPiece, TokenizerKind
from transduce.text.word_edges import WordEdges


class RenumberedTokenizer:
    """Our own tokenizer under other ids; `numbers[id]` is the new number of one of its ids.

    Padding and start are one id. The number before it, which our padding's row moves to, is of no token.
    """

    kind: TokenizerKind = "bpe"
    has_line_breaks = False

    def __init__(self, inner: BpeTokenizer) -> None:
        self.inner, self.vocabulary_size = inner, inner.vocabulary_size
        last = inner.vocabulary_size - 1
        self.special = SpecialTokens(padding=last, unknown=1, start=last, end=0)
        self.numbers = [last - 1, 1, last, 0, *range(2, last - 1)]
        self.symbols = [self.numbers[token] for token in inner.symbols]
        self.fingerprint = "renumbered " + inner.fingerprint
        self._tokens = {number: token for token, number in enumerate(self.numbers)}

    def to_bytes(self) -> bytes:
        return b"renumbered" + self.inner.to_bytes()

    def encode(self, text: str) -> list[int]:
        return [self.numbers[token] for token in self.inner.encode(text)]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_inside(self, text: str) -> list[int]:
        return [self.numbers[token] for token in self.inner.encode_inside(text)]

    def decode(self, ids: Sequence[int]) -> str:
        return self.inner.decode([self._tokens[number] for number in ids])

    def piece(self, token: int) -> str:
        return self.inner.piece(self._tokens[token])

    def written(self, token: int) -> bytes:
        return self.inner.written(self._tokens[token])

    def pieces(self, text: str) -> list[TextPiece]:
        return [piece._replace(id=self.numbers[piece.id]) for piece in self.inner.pieces(text)]

    @cached_property
    def word_edges(self) -> WordEdges:
        return WordEdges.of([self.written(number) for number in range(self.vocabulary_size)], self.special)
