"""Text to token ids and back: one byte-pair vocabulary shared by source and target (section 5.1).

The laws, for any Unicode text x and any ids:

    decode(encode(x)) = normalize(x)        no character is lost: what has no piece is spelled in bytes
    decode(sample(x)) = normalize(x)        whatever the dropout
    sample(x) at dropout 0 = encode(x)
    normalize(decode(ids)) = decode(ids)    so a model that emits a newline in bytes emits a space

sentencepiece learns the vocabulary and encodes. Departures from its defaults: the normalisation is ours and its own is
the identity, for its default changes and loses characters; sampling is ours, for its generator cannot be seeded anew; a
word of more than 512 characters is cut there, which bounds the work for each character whatever the text.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import sentencepiece

from transduce.progress import Progress, Silent
from transduce.text.bpe_dropout import Dice, Merger
from transduce.text.normalization import WORD_MARK, normalize, normalize_with_starts
from transduce.text.placeholders import RESERVED
from transduce.text.vocabulary import (
    BOS,
    EOS,
    FIRST_BYTE,
    FIRST_LEARNED,
    PAD,
    UNK,
    printable_pieces,
    read_model,
    write_model,
)
from transduce.text.vocabulary_learning import learn_pieces
from transduce.text.word_edges import WordEdges

__all__ = ["BOS", "EOS", "PAD", "UNK", "Piece", "Tokenizer"]

LONGEST_WORD = 512  # characters, its mark included


class Piece(NamedTuple):
    """One token of a text: its id, its printable form, and the share of the original text that it stands for."""

    id: int
    text: str
    start: int
    end: int


class Tokenizer:
    """A learned vocabulary and what it does to text. Ids 0 to 3 are PAD, UNK, BOS and EOS."""

    def __init__(self, learned: Sequence[str]) -> None:
        self._content = write_model(learned)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._content)
        self._printable = printable_pieces(learned)
        self._ids = {piece: FIRST_LEARNED + rank for rank, piece in enumerate(learned)}
        self._ids |= {symbol: EOS + 1 + number for number, symbol in enumerate(RESERVED)}

    @classmethod
    def learn(cls, lines: Iterable[str], *, vocabulary_size: int, progress: Progress = Silent()) -> "Tokenizer":  # noqa: B008
        """Learn a vocabulary from `lines`, placeholders already replaced: the same from the same lines, always.

        Where the lines do not support `vocabulary_size` ids the largest vocabulary that they do support is learned:
        every word that occurs, up to 16 characters of it, is then one piece.
        """
        return cls(learn_pieces(lines, vocabulary_size=vocabulary_size, progress=progress))

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "tokenizer.model") -> "Tokenizer":
        """Return the tokenizer that `to_bytes` wrote; anything else is a ModelError that calls it `name`."""
        return cls(read_model(content, name=name))

    def to_bytes(self) -> bytes:
        """Return the tokenizer as a sentencepiece model file."""
        return self._content

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the file: equal for tokenizers that do the same."""
        return hashlib.sha256(self._content).hexdigest()

    @property
    def vocabulary_size(self) -> int:
        """How many ids there are."""
        return len(self._printable)

    def piece(self, token: int) -> str:
        """Return the printable form of an id: `▁word`, `<0x0A>` for a byte, `⟨0⟩` for a reserved symbol."""
        return self._printable[token]

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, normalised; neither BOS nor EOS is added."""
        return self._encode_normal(normalize(text))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text; much faster than one by one."""
        normals = [normalize(text) for text in texts]
        if max(map(len, normals), default=0) < LONGEST_WORD:
            ids: list[list[int]] = self._processor.encode(normals, num_threads=1)
            return ids
        return [self._encode_normal(normal) for normal in normals]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` without the special ones; it is normalised, so it has no newline."""
        written = b"".join(map(self._bytes_by_id.__getitem__, ids)).decode("utf-8", "replace")
        return normalize(written.replace(WORD_MARK, " "))

    def sample(self, text: str, *, dropout: float, key: tuple[int, int, int]) -> list[int]:
        """Return the ids of `text` cut with BPE-dropout; they depend on `key` = (seed, epoch, sentence) alone.

        Two texts with one key share their random numbers: give the sides of a pair different sentence numbers.
        """
        dice = Dice(dropout=dropout, key=key)
        sample, id_of = self._merger.sample, self._ids.get
        ids: list[int] = []
        for word in self._words(normalize(text)):
            for piece in sample(word, dice):
                known = id_of(piece)
                if known is not None:
                    ids.append(known)
                else:
                    ids.extend(FIRST_BYTE + value for value in piece.encode("utf-8"))
        return ids

    def pieces(self, text: str) -> list[Piece]:
        """Return the pieces of `text` with their spans in it, in order.

        The spans cover the whole text: spaces belong to the word after them, at the end to the word before.
        Pieces of one character, such as its bytes, share a span.
        """
        normal, starts = normalize_with_starts(text)
        # In front of the text stands the mark that every word begins with.
        starts = [0, *starts]
        ends = [len(text)] * len(starts)
        for index in range(len(starts) - 2, -1, -1):
            ends[index] = ends[index + 1] if starts[index] == starts[index + 1] else starts[index + 1]
        pieces: list[Piece] = []
        position = bytes_left = 0
        for token in self._encode_normal(normal):
            length = 1
            if FIRST_BYTE <= token < FIRST_LEARNED:
                bytes_left = bytes_left or len(normal[position - 1].encode("utf-8"))
                bytes_left -= 1
            elif token >= FIRST_LEARNED:
                length = len(self._printable[token])
            pieces.append(Piece(token, self._printable[token], starts[position], ends[position + length - 1]))
            position += 0 if bytes_left else length
        return pieces

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text` as it is written right after something else: its first word has no mark."""
        return self._encode_normal(RESERVED[0] + normalize(text))[2:]

    @cached_property
    def word_edges(self) -> WordEdges:
        """Which tokens words end at, and may begin after."""
        return WordEdges.of(self._bytes_by_id)

    def _encode_normal(self, normal: str) -> list[int]:
        if len(normal) < LONGEST_WORD:
            ids: list[int] = self._processor.encode(normal)
            return ids
        # A symbol in front keeps sentencepiece from marking the middle of a word as a beginning. It and the mark before
        # it are the first two ids.
        words = [RESERVED[0] + word.replace(WORD_MARK, " ") for word in self._words(normal)]
        return [token for ids in self._processor.encode(words, num_threads=1) for token in ids[2:]]

    def _words(self, normal: str) -> list[str]:
        """Cut a normalised text into words with their mark, which no piece crosses, none of them too long."""
        if not normal:
            return []
        words = (WORD_MARK + normal.replace(" ", " " + WORD_MARK)).split(" ")
        if max(map(len, words)) > LONGEST_WORD:
            words = [word[n : n + LONGEST_WORD] for word in words for n in range(0, len(word), LONGEST_WORD)]
        return words

    @cached_property
    def _bytes_by_id(self) -> list[bytes]:
        raw_bytes = [bytes([value]) for value in range(256)]
        learned = [piece.encode("utf-8") for piece in self._printable[FIRST_LEARNED:]]
        return [b""] * (EOS + 1) + [symbol.encode("utf-8") for symbol in RESERVED] + raw_bytes + learned

    @cached_property
    def _merger(self) -> Merger:
        return Merger({piece: rank for rank, piece in enumerate(self._printable[FIRST_LEARNED:])})
