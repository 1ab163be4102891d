"""One token per character.

The vocabulary is every character of the training text, the most frequent first, as far as `vocabulary_size` and
`RAREST_CHARACTER` allow. Other characters are spelled in their UTF-8 bytes, so no character is lost and the unknown
token never occurs. A space becomes the mark ▁, which is an ordinary token; no mark is added at the beginning of a text.
Symbols for placeholders are one token each. `vocabulary.py` gives the ids; the mark is the first learned piece.

The file is text in UTF-8: `HEADER`, a line end, the characters after the mark in order of their ids, a line end.
The reader checks the size, then each character, and then that writing the tokenizer again gives the same bytes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from transduce.errors import DataError, ModelError
from transduce.progress import Progress, Silent
from transduce.text.normalization import WORD_MARK, can_stand_in_a_word, normalize, normalize_with_starts
from transduce.text.placeholders import RESERVED, SYMBOL
from transduce.text.tokenizer import TextPiece, TokenizerKind
from transduce.text.vocabulary import (
    FIRST_LEARNED,
    LARGEST_VOCABULARY,
    REMEDY,
    LearnedTokenizer,
    byte_ids,
    frequent_characters,
    require_possible_size,
    span_ends,
)

HEADER = b"transduce characters 1\n"
LARGEST_FILE = len(HEADER) + 4 * LARGEST_VOCABULARY + 1  # bytes

_WITHOUT_SYMBOLS = str.maketrans(dict.fromkeys([*RESERVED, " "], ""))


class CharacterTokenizer(LearnedTokenizer):
    """A vocabulary of characters."""

    kind: TokenizerKind = "characters"

    def __init__(self, characters: Sequence[str]) -> None:
        super().__init__([WORD_MARK, *characters], HEADER + "".join(characters).encode("utf-8") + b"\n")

    @classmethod
    def learn(
        cls,
        lines: Iterable[str],
        *,
        vocabulary_size: int,
        progress: Progress = Silent(),  # noqa: B008
    ) -> "CharacterTokenizer":
        """Learn at most `vocabulary_size` ids from `lines`, placeholders already replaced."""
        require_possible_size(vocabulary_size)
        frequency: Counter[str] = Counter()
        with progress.stage("counting characters", unit="lines") as stage:
            for number, line in enumerate(lines, start=1):
                frequency.update(normalize(line).translate(_WITHOUT_SYMBOLS))
                if number % 1000 == 0:
                    stage.advance(1000)
        if not frequency:
            raise DataError("There is no text to learn characters from: every line is empty. Check the training files.")
        return cls(frequent_characters(frequency, most=vocabulary_size - FIRST_LEARNED - 1))

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "tokenizer.model") -> "CharacterTokenizer":
        """Return the tokenizer that `to_bytes` wrote; raise ModelError, naming `name`, for any other content."""
        if len(content) > LARGEST_FILE:
            raise ModelError(f"{name} has {len(content):,} bytes; a tokenizer has at most {LARGEST_FILE:,}. {REMEDY}")
        try:
            characters = content.removeprefix(HEADER).removesuffix(b"\n").decode("utf-8")
        except UnicodeDecodeError:
            raise ModelError(f"{name} is damaged: it is not UTF-8 text. {REMEDY}") from None
        are_sound = len(set(characters)) == len(characters) and can_stand_in_a_word(characters)
        if not are_sound or not characters or SYMBOL.search(characters):
            raise ModelError(f"{name} is damaged: its characters cannot all be in a vocabulary. {REMEDY}")
        if FIRST_LEARNED + 1 + len(characters) > LARGEST_VOCABULARY:
            raise ModelError(f"{name} has more characters than a tokenizer may have. {REMEDY}")
        tokenizer = cls(characters)
        if tokenizer.to_bytes() != content:
            raise ModelError(f"{name} is damaged or was not written by transduce. {REMEDY}")
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the ids of the characters of `text` after normalisation."""
        return [token for tokens in self._ids_by_character(normalize(text)) for token in tokens]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [self.encode(text) for text in texts]

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text`, which are the same inside a text as at its beginning."""
        return self.encode(text)

    def pieces(self, text: str) -> list[TextPiece]:
        """Return the tokens of `text` with their spans; the bytes of one character share its span."""
        normal, starts = normalize_with_starts(text)
        starts = [0, *starts[1:]]
        spans = zip(starts, span_ends(starts, length=len(text)), strict=True)
        return [
            TextPiece(token, self.piece(token), *span)
            for tokens, span in zip(self._ids_by_character(normal), spans, strict=False)
            for token in tokens
        ]

    def _ids_by_character(self, normal: str) -> Iterator[list[int]]:
        """Yield the id of each character, or the ids of its bytes if it has none."""
        for character in normal.replace(" ", WORD_MARK):
            known = self._ids.get(character)
            yield [known] if known is not None else byte_ids(character)
