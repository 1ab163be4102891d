"""The vocabularies of an imported model as a pair of tokenizers that fit its matrices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from transduce.errors import ModelError
from transduce.importing.embeddings import PADDING, EmbeddingMatrices, padding_of
from transduce.importing.target_tags import target_tag
from transduce.tensor_file import Array
from transduce.text.imported_tokenizer import ImportedTokenizer
from transduce.text.imported_vocabulary import ImportedVocabulary
from transduce.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class ForeignVocabulary:
    """The vocabulary of one side, and how its program cuts text into pieces."""

    pieces: Sequence[str]
    name: str
    """The file, for errors."""
    start: str
    end: str = "</s>"
    unknown: str = "<unk>"
    piece_file: bytes = b""
    """A sentencepiece model."""
    codes: tuple[tuple[str, str], ...] | None = None
    moses: str | None = None

    def tokenizer(self, *, tag: str | None) -> ImportedTokenizer:
        """Return the tokenizer; raise ModelError if the vocabulary is damaged."""
        padding = padding_of(self.pieces)
        pieces = self.pieces if padding is not None else [*self.pieces, PADDING]
        ids = {piece: token for token, piece in enumerate(pieces)}
        missing = [piece for piece in (self.unknown, self.start, self.end) if piece not in ids]
        if missing:
            raise ModelError(f"{self.name} is damaged: it lacks the piece {missing[0]:.40}.")
        try:
            vocabulary = ImportedVocabulary(
                pieces=tuple(pieces),
                padding=ids[padding or PADDING],
                unknown=ids[self.unknown],
                start=ids[self.start],
                end=ids[self.end],
                tag=tag,
                codes=self.codes,
                moses=self.moses,
            )
        except ValidationError as fault:
            raise ModelError(f"{self.name} is damaged: {fault.errors()[0]['msg']:.200}.") from None
        return ImportedTokenizer(vocabulary, self.piece_file, name=self.name)


@dataclass(frozen=True)
class FittedVocabularies:
    """The tokenizers, and the embeddings that belong to them under our names."""

    tokenizers: TokenizerPair
    weights: dict[str, Array]
    tied: str

    @property
    def options(self) -> dict[str, object]:
        """The options of the network that follow."""
        return {
            "vocabulary_size": self.tokenizers.vocabulary_size,
            "source_vocabulary_size": self.tokenizers.source_vocabulary_size,
            "tied": self.tied,
            "output_bias": "embeddings.output_bias_V" in self.weights,
        }


def fitted(
    source: ForeignVocabulary,
    target: ForeignVocabulary,
    matrices: EmbeddingMatrices,
    *,
    to: str | None,
    source_end: bool = True,
) -> FittedVocabularies:
    """Return the tokenizers and the embeddings under our names.

    Where a vocabulary has no piece for padding, it is added. `to` is the language for `target_tag`.
    """
    for side, rows_VD in ((source, matrices.source_VD), (target, matrices.target_VD), (target, matrices.output_VD)):
        if rows_VD.ndim != 2 or len(rows_VD) != len(side.pieces):
            raise ModelError(
                f"{side.name} has {len(side.pieces):,} pieces, but the embedding has the shape {rows_VD.shape}: these "
                "files do not belong together."
            )
    matrices = matrices.padded(source=padding_of(source.pieces) is None, target=padding_of(target.pieces) is None)
    weights, tied = matrices.named(has_one_vocabulary=list(source.pieces) == list(target.pieces))
    own = source.tokenizer(tag=target_tag(source.pieces, to))
    pair = tokenizer_pair(own, target.tokenizer(tag=None), weights, source_end=source_end)
    return FittedVocabularies(pair, weights, tied)


def tokenizer_pair(
    source: ImportedTokenizer, target: ImportedTokenizer, weights: dict[str, Array], *, source_end: bool = True
) -> TokenizerPair:
    """Return the pair; if the sides pad with different ids, the source's ids and its embedding are renumbered."""
    if source.to_bytes() == target.to_bytes():
        return TokenizerPair.shared(target, source_end=source_end)
    own, wanted = source.special.padding, target.special.padding
    if own != wanted:
        pieces, rows_VD = list(source.vocabulary.pieces), weights["embeddings.source_VD"]
        if wanted >= len(pieces) + 4096:
            raise ModelError("The padding token of the target vocabulary is far outside the source vocabulary.")
        added = max(0, wanted + 1 - len(pieces))
        pieces += [f"<unused{n}>" for n in range(added)]
        rows_VD = np.concatenate([rows_VD, np.zeros((added, rows_VD.shape[1]), rows_VD.dtype)])
        numbers = {own: wanted, wanted: own}
        order = [numbers.get(token, token) for token in range(len(pieces))]
        weights["embeddings.source_VD"] = rows_VD[order]
        special = source.special
        keys = {"padding": special.padding, "unknown": special.unknown, "start": special.start, "end": special.end}
        changed = {key: numbers.get(token, token) for key, token in keys.items()}
        renumbered = {"pieces": tuple(pieces[token] for token in order), **changed}
        source = ImportedTokenizer(source.vocabulary.model_copy(update=renumbered), source.piece_file)
    return TokenizerPair(source, target, source_end)


def numbered_pieces(numbers: object, *, name: str) -> list[str]:
    """Return the pieces of a mapping from piece to id, by id; ids must be 0, 1, 2 and so on."""
    if not isinstance(numbers, dict) or not all(type(token) is int for token in numbers.values()):
        raise ModelError(f"{name} is damaged: it is not a mapping from pieces to ids.")
    pieces = {token: str(piece) for piece, token in numbers.items()}
    if set(pieces) != set(range(len(numbers))):
        raise ModelError(f"{name} is damaged: its ids are not 0 to {len(numbers) - 1:,}, each once.")
    return [pieces[token] for token in range(len(pieces))]
