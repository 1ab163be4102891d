"""The protocol of tokenizers, which convert text to token ids and back.

    BpeTokenizer         byte-pair encoding, as in section 5.1 of the paper
    CharacterTokenizer   one token per character
    WordTokenizer        one token per word, for the symbols of trees; it departs from the first law
    ImportedTokenizer    the vocabulary of a model that another program trained; it departs from the first law
    ByteTokenizer        GPT-2's byte-level BPE, which normalises nothing
    WordPieceTokenizer   BERT's WordPiece; it departs from the first law

The laws, for any Unicode text x and any ids:

    decode(encode(x)) = normalize(x)                    if unknown characters are spelled in bytes (true of both)
    normalize(decode(ids)) = decode(ids)                so a decoded text is one line
    decode(ids) = normalize(text of the bytes written)  with a space for each mark ▁
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from transduce.special_tokens import SpecialTokens
from transduce.text.word_edges import WordEdges

LearnedKind = Literal["bpe", "characters"]
"""The kinds of tokenizer that can be learned from any text."""
TokenizerKind = Literal["bpe", "characters", "words", "imported", "byte_pieces", "word_pieces"]
"""The kinds of tokenizer that can be saved."""


class TextPiece(NamedTuple):
    """One token of a text: its id, its printable form, and its span in the original text."""

    id: int
    text: str
    start: int
    end: int


class Tokenizer(Protocol):
    """A vocabulary, with methods that cut text into tokens and join tokens into text."""

    @property
    def kind(self) -> TokenizerKind:
        """The name of the method."""

    @property
    def special(self) -> SpecialTokens:
        """The ids of the padding, unknown, start and end tokens."""

    @property
    def symbols(self) -> Sequence[int]:
        """The ids of the symbols for placeholders in order; empty if the vocabulary has none."""

    @property
    def vocabulary_size(self) -> int:
        """The number of ids."""

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the file; tokenizers with equal fingerprints behave equally."""

    @property
    def has_line_breaks(self) -> bool:
        """Whether a line break is a token like others; otherwise a language model writes its end token for it."""

    @property
    def word_edges(self) -> WordEdges:
        """The tokens at which words end, and after which words may begin."""

    def to_bytes(self) -> bytes:
        """Return the tokenizer as the content of a file."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` after normalisation, without start and end tokens."""

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text; this may be faster than one by one."""

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text` as the continuation of a text, without a space between."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`; special tokens add nothing."""

    def piece(self, token: int) -> str:
        """Return the printable form of an id."""

    def written(self, token: int) -> bytes:
        """Return the UTF-8 bytes that an id adds to a text, with ▁ for a space; a special token adds none."""

    def pieces(self, text: str) -> list[TextPiece]:
        """Return the tokens of `text` in order; spans cover the text, and the bytes of one character share a span."""


@runtime_checkable
class SamplingTokenizer(Protocol):
    """A tokenizer that can also cut a text at random, for BPE-dropout."""

    def sample(self, text: str, *, dropout: float, key: tuple[int, int, int]) -> list[int]:
        """Return ids that decode to the same text; they depend on `text`, `dropout` and `key` alone."""
