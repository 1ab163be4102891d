"""Reads the tokenizer that other programs need from a model: one sentencepiece model for source and target."""

import sentencepiece

from transduce.errors import ModelError
from transduce.model_directory import ModelDirectory


def sentencepiece_model(model: ModelDirectory, *, program: str) -> bytes:
    """Return the sentencepiece model that both sides share; raise an error that names `program` if there is none."""
    pair = model.tokenizers
    faults = []
    if not pair.is_shared:
        faults.append("its sources have a tokenizer of their own")
    if pair.target.kind != "bpe":
        faults.append(f"its tokenizer is of the kind {pair.target.kind!r}, and only 'bpe' has a sentencepiece model")
    if not pair.source_end:
        faults.append("its sources do not end in the end token")
    if faults:
        raise ModelError(f"{model.folder} cannot be exported to {program}: {'; '.join(faults)}. Export another model.")
    return pair.target.to_bytes()


def piece_names(content: bytes) -> list[str]:
    """Return the name of each id in a sentencepiece model."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
