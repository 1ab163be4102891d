"""Byte-pair encoding: words cut into frequent pieces (section 5.1).

The laws, for any Unicode text x:

    decode(encode(x)) = normalize(x)        no character is lost: a character without a piece is spelled in bytes
    decode(sample(x)) = normalize(x)        for any dropout
    sample(x) at dropout 0 = encode(x)

sentencepiece learns the vocabulary and encodes. Departures from its defaults: we normalise and sentencepiece does not,
because its default normalisation changes and loses characters; we sample, because its random generator can be seeded
only once; a word of more than 512 characters is cut, which bounds the work for each character of any text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import sentencepiece

from transduce.progress import Progress, Silent
from transduce.text.bpe_dropout import Dice, Merger
from transduce.text.bpe_learning import learn_pieces
from transduce.text.normalization import WORD_MARK, normalize, normalize_with_starts
from transduce.text.placeholders import RESERVED
from transduce.text.sentencepiece_file import read_model, write_model
from transduce.text.tokenizer import TextPiece, TokenizerKind
from transduce.text.vocabulary import FIRST_BYTE, FIRST_LEARNED, LearnedTokenizer, byte_ids, is_tag, span_ends

LONGEST_WORD = 512  # characters, its mark included


class BpeTokenizer(LearnedTokenizer):
    """A vocabulary of learned pieces; a piece that begins a word carries the mark ▁."""

    kind: TokenizerKind = "bpe"

    def __init__(self, learned: Sequence[str], *, content: bytes | None = None) -> None:
        super().__init__(learned, write_model(learned) if content is None else content)
        tags = [piece for piece in learned if is_tag(piece)]
        self._tags = re.compile(f"({'|'.join(tags)})") if tags else None
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._content)

    @classmethod
    def learn(
        cls,
        lines: Iterable[str],
        *,
        vocabulary_size: int,
        tags: Sequence[str] = (),
        progress: Progress = Silent(),  # noqa: B008
    ) -> "BpeTokenizer":
        """Learn a vocabulary from `lines`, placeholders already replaced; equal lines give equal vocabularies.

        Each of `tags` is one of the pieces.

        If the lines do not support `vocabulary_size` ids, this learns the largest vocabulary that they support, in
        which every word, up to 16 characters of it, is one piece.
        """
        size = vocabulary_size - len(tags)
        return cls([*tags, *learn_pieces(lines, vocabulary_size=size, progress=progress)])

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "tokenizer.model") -> "BpeTokenizer":
        """Return the tokenizer that `to_bytes` wrote; raise ModelError, naming `name`, for any other content."""
        return cls(read_model(content, name=name), content=content)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` after normalisation, without start and end tokens."""
        return self._encode_normal(normalize(text))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text; much faster than one by one."""
        normals = [normalize(text) for text in texts]
        # sentencepiece makes threads for a list, even for a list of one text.
        if len(normals) > 1 and max(map(len, normals)) < LONGEST_WORD:
            ids: list[list[int]] = self._processor.encode(normals, num_threads=1)
            return ids
        return [self._encode_normal(normal) for normal in normals]

    def sample(self, text: str, *, dropout: float, key: tuple[int, int, int]) -> list[int]:
        """Return the ids of `text` cut with BPE-dropout; they depend on `key` = (seed, epoch, sentence) alone.

        Two texts with one key share their random numbers: give the sides of a pair different sentence numbers.
        """
        dice = Dice(dropout=dropout, key=key)
        id_of = self._ids.get
        ids: list[int] = []
        for word in self._words(normalize(text)):
            for piece in self._sampled(word, dice):
                known = id_of(piece)
                if known is not None:
                    ids.append(known)
                else:
                    ids.extend(byte_ids(piece))
        return ids

    def _sampled(self, word: str, dice: Dice) -> Iterator[str]:
        """Yield the pieces of a word; tags in it are not cut."""
        for part in (word,) if self._tags is None else self._tags.split(word):
            if is_tag(part) and part in self._ids:
                yield part
            elif part:
                yield from self._merger.sample(part, dice)

    def pieces(self, text: str) -> list[TextPiece]:
        """Return the pieces of `text` with their spans in it, in order.

        The spans cover the whole text: spaces belong to the word after them, and those at the end to the last word.
        The bytes of one character share a span.
        """
        normal, starts = normalize_with_starts(text)
        starts = [0, *starts]  # the mark of the first word comes before the first character
        ends = span_ends(starts, length=len(text))
        pieces: list[TextPiece] = []
        position = bytes_left = 0
        for token in self._encode_normal(normal):
            length = 1
            if FIRST_BYTE <= token < FIRST_LEARNED:
                bytes_left = bytes_left or len(normal[position - 1].encode("utf-8"))
                bytes_left -= 1
            elif token >= FIRST_LEARNED:
                length = len(self._printable[token])
            pieces.append(TextPiece(token, self._printable[token], starts[position], ends[position + length - 1]))
            position += 0 if bytes_left else length
        return pieces

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text` as the continuation of a word: its first word has no mark."""
        return self._encode_normal(RESERVED[0] + normalize(text))[2:]

    def _encode_normal(self, normal: str) -> list[int]:
        if len(normal) < LONGEST_WORD:
            ids: list[int] = self._processor.encode(normal)
            return ids
        # sentencepiece would mark the second half of a cut word as the beginning of a word. A symbol in front prevents
        # this; the first two ids, a mark and the symbol, are then removed.
        words = [RESERVED[0] + word.replace(WORD_MARK, " ") for word in self._words(normal)]
        return [token for ids in self._processor.encode(words, num_threads=1) for token in ids[2:]]

    def _words(self, normal: str) -> list[str]:
        """Cut a normalised text into words with their marks, of at most `LONGEST_WORD` characters each."""
        if not normal:
            return []
        words = (WORD_MARK + normal.replace(" ", " " + WORD_MARK)).split(" ")
        if max(map(len, words)) > LONGEST_WORD:
            words = [word[n : n + LONGEST_WORD] for word in words for n in range(0, len(word), LONGEST_WORD)]
        return words

    @cached_property
    def _merger(self) -> Merger:
        return Merger({piece: rank for rank, piece in enumerate(self._printable[FIRST_LEARNED:])})
