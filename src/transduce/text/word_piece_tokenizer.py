"""WordPiece, the tokenizer of BERT (Devlin et al. 2019), for models that another program trained.

Control characters are removed, white space and signs end a word, and a Chinese character is a word. Words may be put in
lower case and lose their accents, as the model was trained. A word is cut into the longest piece that begins it, then
the longest that goes on, written with ## in front, and so on; a word that cannot be cut so is the unknown token.

The names of the special tokens, such as [MASK], stand for these tokens in a text.

Departure from the laws of `tokenizer.py`: what normalisation changes and unknown words are lost, as in its own program.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from transduce.errors import ModelError
from transduce.text.imported_vocabulary import ForeignTokenizer, ImportedVocabulary
from transduce.text.normalization import WORD_MARK, normalize
from transduce.text.tokenizer import TextPiece, TokenizerKind

HEADER = b"transduce word pieces 1\n"
MASK = "[MASK]"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", MASK)
LONGEST_WORD = 100
_NAMES = re.compile("|".join(map(re.escape, SPECIAL)))
_CONTINUES = "##"
_CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
_ASCII_SIGNS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class WordPieceTokenizer(ForeignTokenizer):
    """A vocabulary of whole words and parts of words."""

    kind: TokenizerKind = "word_pieces"
    has_line_breaks = False

    def __init__(self, vocabulary: ImportedVocabulary, *, name: str = "tokenizer.model") -> None:
        content = json.dumps(vocabulary.model_dump(mode="json", exclude_none=True)).encode()
        super().__init__(vocabulary, HEADER + content + b"\n")
        missing = [piece for piece in SPECIAL if piece not in self._ids]
        if missing or vocabulary.word_pieces is None:
            raise ModelError(f"{name} is damaged: it lacks {missing[0] if missing else 'how words are normalised'}.")
        self.mask = self._ids[MASK]
        self._normal = _normalization(vocabulary)

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "tokenizer.model") -> "WordPieceTokenizer":
        """Return the tokenizer that `to_bytes` wrote; raise ModelError, naming `name`, for any other content."""
        return cls(ImportedVocabulary.read(content.removeprefix(HEADER), name=name), name=name)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, without those that begin and end it."""
        return [piece.id for piece in self.pieces(text)]

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [self.encode(text) for text in texts]

    def encode_inside(self, text: str) -> list[int]:
        """Return the ids of `text`, whose first word does not continue the word before."""
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words of `ids`, with a space between words and signs."""
        return normalize(b"".join(map(self._written.__getitem__, ids)).decode("utf-8").replace(WORD_MARK, " "))

    def pieces(self, text: str) -> list[TextPiece]:
        """Return the tokens of `text`, each with the characters that it was made of."""
        found, place = list[TextPiece](), 0
        for name in (*_NAMES.finditer(text), None):
            end = len(text) if name is None else name.start()
            for word, places in self._words(text[place:end]):
                found += (
                    TextPiece(token, self.piece(token), place + places[first], place + places[last - 1] + 1)
                    for token, first, last in self._cut(word)
                )
            if name is not None:
                found.append(TextPiece(self._ids[name[0]], name[0], *name.span()))
                place = name.end()
        return found

    def _words(self, text: str) -> list[tuple[str, list[int]]]:
        """Return the words and signs of a text after normalisation, with the place of each of their characters."""
        words, continues = list[tuple[str, list[int]]](), False
        for place, original in enumerate(text):
            for character, stands_alone in self._normal(original):
                if character == " ":
                    continues = False
                elif continues and not stands_alone:
                    words[-1] = (words[-1][0] + character, [*words[-1][1], place])
                else:
                    words.append((character, [place]))
                    continues = not stands_alone
        return words

    def _cut(self, word: str) -> list[tuple[int, int, int]]:
        """Return the pieces of a word, each with the place where it begins and the place after its end."""
        unknown, cuts, first = [(self.vocabulary.unknown, 0, len(word))], list[tuple[int, int, int]](), 0
        while first < len(word) <= LONGEST_WORD:
            mark = _CONTINUES if first else ""
            last = next((end for end in range(len(word), first, -1) if mark + word[first:end] in self._ids), None)
            if last is None:
                return unknown
            cuts.append((self._ids[mark + word[first:last]], first, last))
            first = last
        return cuts or unknown

    @cached_property
    def _written(self) -> list[bytes]:
        return [
            b""
            if token in self.special.ids
            else (piece.removeprefix(_CONTINUES) if piece.startswith(_CONTINUES) else WORD_MARK + piece).encode()
            for token, piece in enumerate(self.vocabulary.pieces)
        ]


def _normalization(vocabulary: ImportedVocabulary) -> Callable[[str], tuple[tuple[str, bool], ...]]:
    options = vocabulary.word_pieces
    assert options is not None

    @lru_cache(1 << 16)
    def normal(character: str) -> tuple[tuple[str, bool], ...]:
        """Return what becomes of a character, and whether each of the results is a word by itself."""
        if character in "\t\n\r" or character.isspace():
            return ((" ", False),)
        if character in "\0\ufffd" or unicodedata.category(character)[0] == "C":
            return ()
        is_word = options.chinese_characters and any(low <= ord(character) <= high for low, high in _CHINESE)
        written = unicodedata.normalize("NFD", character) if options.strip_accents else character
        kept = [each for each in written if not (options.strip_accents and unicodedata.category(each) == "Mn")]
        lower = "".join(each.lower() if options.lowercase else each for each in kept)
        return tuple((each, is_word or _is_sign(each)) for each in lower)

    return normal


def _is_sign(character: str) -> bool:
    return character in _ASCII_SIGNS or unicodedata.category(character)[0] == "P"
