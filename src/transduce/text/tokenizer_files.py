"""Tokenizers on disk: `tokenizer.model`, and `source_tokenizer.model` if sources have a tokenizer of their own.

The first bytes of a file give its kind: files of characters, of words and of imported models begin with a header, and
every other file must be a sentencepiece model that transduce wrote. A file above the size limit is refused, and no part
of a file is executed.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from transduce.errors import ModelError
from transduce.progress import Progress
from transduce.text import (
    byte_tokenizer,
    character_tokenizer,
    imported_tokenizer,
    sentencepiece_file,
    word_piece_tokenizer,
    word_tokenizer,
)
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.byte_tokenizer import ByteTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.imported_tokenizer import ImportedTokenizer
from transduce.text.tokenizer import LearnedKind, Tokenizer
from transduce.text.vocabulary import REMEDY
from transduce.text.word_piece_tokenizer import WordPieceTokenizer
from transduce.text.word_tokenizer import WordTokenizer

TOKENIZER, SOURCE_TOKENIZER = "tokenizer.model", "source_tokenizer.model"

_LARGEST_FILE = max(character_tokenizer.LARGEST_FILE, sentencepiece_file.LARGEST_FILE)


def learn_tokenizer(
    kind: LearnedKind | Literal["words"],
    lines: Iterable[str],
    *,
    vocabulary_size: int,
    progress: Progress,
    tags: Sequence[str] = (),
) -> Tokenizer:
    """Learn a tokenizer of this kind from `lines`, placeholders already replaced; only BPE has pieces for `tags`."""
    if kind == "bpe":
        return BpeTokenizer.learn(lines, vocabulary_size=vocabulary_size, tags=tags, progress=progress)
    learner = WordTokenizer if kind == "words" else CharacterTokenizer
    return learner.learn(lines, vocabulary_size=vocabulary_size, progress=progress)


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer in a file; raise ModelError if the file is damaged, too large or not from transduce."""
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise ModelError(f"{path} has {size:,} bytes; a tokenizer has at most {_LARGEST_FILE:,}. {REMEDY}")
    content = path.read_bytes()
    if content.startswith(imported_tokenizer.HEADER):
        return ImportedTokenizer.from_bytes(content, name=str(path))
    if content.startswith(word_tokenizer.HEADER):
        return WordTokenizer.from_bytes(content, name=str(path))
    if content.startswith(byte_tokenizer.HEADER):
        return ByteTokenizer.from_bytes(content, name=str(path))
    if content.startswith(word_piece_tokenizer.HEADER):
        return WordPieceTokenizer.from_bytes(content, name=str(path))
    reader = CharacterTokenizer if content.startswith(character_tokenizer.HEADER) else BpeTokenizer
    return reader.from_bytes(content, name=str(path))
