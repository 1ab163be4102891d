"""One token per word, for targets that are symbols of trees: every word of the training text is in the vocabulary.

Words are what spaces separate. A word that is not in the vocabulary becomes the unknown token. So this tokenizer
departs from the first law: decode(encode(x)) = normalize(x) only if the vocabulary has all words of x.

The file is text in UTF-8: `HEADER`, then a line for each word in order of its id, the most frequent first. The reader
checks the size, then each word, and then that writing the tokenizer again gives the same bytes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from transduce.errors import DataError, ModelError
from transduce.progress import Progress, Silent
from transduce.text.normalization import WORD_MARK, can_stand_in_a_word, normalize, normalize_with_starts
from transduce.text.placeholders import SYMBOL
from transduce.text.tokenizer import TextPiece, TokenizerKind
from transduce.text.vocabulary import FIRST_LEARNED, LARGEST_VOCABULARY, REMEDY, LearnedTokenizer, require_possible_size

HEADER = b"transduce words 1\n"
LARGEST_FILE = 16 << 20  # bytes


class WordTokenizer(LearnedTokenizer):
    """A vocabulary of words."""

    kind: TokenizerKind = "words"

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__([WORD_MARK + word for word in words], HEADER + "".join(f"{w}\n" for w in words).encode())

    @classmethod
    def learn(
        cls,
        lines: Iterable[str],
        *,
        vocabulary_size: int,
        progress: Progress = Silent(),  # noqa: B008
    ) -> "WordTokenizer":
        """Learn at most `vocabulary_size` ids from `lines`."""
        require_possible_size(vocabulary_size)
        frequency: Counter[str] = Counter()
        with progress.stage("counting words", unit="lines"):
            for line in lines:
                frequency.update(normalize(line).split())
        if not frequency:
            raise DataError("There is no text to learn words from: every line is empty. Check the training files.")
        ranked = sorted(frequency, key=lambda word: (-frequency[word], word))
        return cls(ranked[: vocabulary_size - FIRST_LEARNED])

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "tokenizer.model") -> "WordTokenizer":
        """Return the tokenizer that `to_bytes` wrote; raise ModelError, naming `name`, for any other content."""
        try:
            words = content.removeprefix(HEADER).decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError:
            raise ModelError(f"{name} is damaged: it is not UTF-8 text. {REMEDY}") from None
        are_sound = 0 < len(words) <= LARGEST_VOCABULARY - FIRST_LEARNED and len(set(words)) == len(words)
        if not are_sound or not all(w and can_stand_in_a_word(w) and not SYMBOL.search(w) for w in words):
            raise ModelError(f"{name} is damaged: its words cannot all be in a vocabulary. {REMEDY}")
        tokenizer = cls(words)
        if tokenizer.to_bytes() != content:
            raise ModelError(f"{name} is damaged or was not written by transduce. {REMEDY}")
        return tokenizer

    @cached_property
    def words(self) -> dict[str, int]:
        """The id of each word."""
        return {piece.removeprefix(WORD_MARK): token for piece, token in self._ids.items() if token >= FIRST_LEARNED}

    @property
    def symbols(self) -> range:
        """No id: a symbol for a placeholder would be none of the words."""
        return range(0)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the words of `text` after normalisation."""
        return [self.words.get(word, self.special.unknown) for word in normalize(text).split()]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [self.encode(text) for text in texts]

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text`, which are the same inside a text as at its beginning."""
        return self.encode(text)

    def pieces(self, text: str) -> list[TextPiece]:
        """Return the tokens of `text` with their spans; a space belongs to the word after it."""
        normal, starts = normalize_with_starts(text)
        pieces: list[TextPiece] = []
        start = place = 0
        for token, word in zip(self.encode(text), normal.split(), strict=True):
            place += len(word) + 1
            end = starts[place - 1] if place <= len(starts) else len(text)
            pieces.append(TextPiece(token, self.piece(token), start, end))
            start = end
        return pieces
