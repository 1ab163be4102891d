"""The tokenizers that other programs need of a model: sentencepiece models, and the piece of each id."""

from collections.abc import Sequence
from dataclasses import dataclass

import sentencepiece

from transduce.errors import ModelError
from transduce.model_directory import ModelDirectory
from transduce.text.imported_tokenizer import ImportedTokenizer
from transduce.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class ProgramTokenizer:
    """A sentencepiece model that cuts text, and the vocabulary that gives ids to its pieces."""

    piece_file: bytes
    pieces: Sequence[str]


def program_tokenizers(
    model: ModelDirectory, *, program: str, vocabularies: int
) -> tuple[ProgramTokenizer, ProgramTokenizer]:
    """Return the tokenizers of sources and targets; raise an error that names `program` if it cannot run them.

    `vocabularies` is how many the program's models can have, 1 or 2.
    """
    pair = model.tokenizers
    faults = [] if vocabularies > 1 or pair.has_one_vocabulary else ["its sources have a tokenizer of their own"]
    faults += [fault for side in (pair.target, pair.source) if (fault := _obstacle(side)) is not None]
    if not pair.source_end:
        faults.append("its sources do not end in the end token")
    if faults:
        raise ModelError(
            f"{model.folder} cannot be exported to {program}: {'; '.join(dict.fromkeys(faults))}. Export another model."
        )
    target = _exported(pair.target)
    return target if pair.is_shared else _exported(pair.source), target


def _obstacle(tokenizer: Tokenizer) -> str | None:
    if isinstance(tokenizer, ImportedTokenizer):
        return None if tokenizer.piece_file else "its text is cut by codes, not by a sentencepiece model"
    if tokenizer.kind == "bpe":
        return None
    return f"its tokenizer is of the kind {tokenizer.kind!r}, and has no sentencepiece model"


def _exported(tokenizer: Tokenizer) -> ProgramTokenizer:
    if isinstance(tokenizer, ImportedTokenizer):
        return ProgramTokenizer(tokenizer.piece_file, tokenizer.vocabulary.pieces)
    content = tokenizer.to_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return ProgramTokenizer(content, [processor.id_to_piece(n) for n in range(processor.get_piece_size())])
