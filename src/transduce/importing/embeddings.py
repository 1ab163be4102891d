"""The embeddings of an imported model: which of its matrices are one, and a row for padding where there is none.

A model needs an id that pads batches. Where a vocabulary has none, `<pad>` becomes its last piece, with a row of zeros
and an output bias of `NEVER`, so that its probability is 0 and those of all other tokens stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from transduce.tensor_file import Array

PADDING = "<pad>"
NEVER = -1e9
_PADDINGS = (PADDING, "<blank>")
_TIES = {(True, True): "all", (False, True): "decoder", (True, False): "inputs", (False, False): "none"}


@dataclass(frozen=True)
class EmbeddingMatrices:
    """The matrices of source, target and output, and the output's bias; equal ones are one."""

    source_VD: Array
    target_VD: Array
    output_VD: Array
    bias_V: Array | None = None

    def named(self, *, has_one_vocabulary: bool) -> tuple[dict[str, Array], str]:
        """Return the weights under our names, and the value of `tied`."""
        inputs_are_one = has_one_vocabulary and are_equal(self.source_VD, self.target_VD)
        decoder_is_one = are_equal(self.target_VD, self.output_VD)
        weights = {"embeddings.source_VD": self.source_VD}
        if not inputs_are_one:
            weights["embeddings.target_VD"] = self.target_VD
        if not decoder_is_one:
            weights["embeddings.output_VD"] = self.output_VD
        if self.bias_V is not None:
            weights["embeddings.output_bias_V"] = self.bias_V
        return weights, _TIES[inputs_are_one, decoder_is_one]

    def padded(self, *, source: bool, target: bool) -> "EmbeddingMatrices":
        """Return the matrices with a row for padding at the end of those of the source, of the target, or both."""
        found = replace(self, source_VD=_with_zeros(self.source_VD)) if source else self
        if not target:
            return found
        bias_V = np.zeros(len(self.output_VD), np.float32) if self.bias_V is None else self.bias_V
        is_one = self.target_VD is self.output_VD
        target_VD = _with_zeros(self.target_VD)
        return replace(
            found,
            target_VD=target_VD,
            output_VD=target_VD if is_one else _with_zeros(self.output_VD),
            bias_V=np.append(bias_V.astype(np.float32), np.float32(NEVER)),
        )


def padding_of(pieces: Sequence[str]) -> str | None:
    """Return the piece that pads, or None if a vocabulary has none."""
    return next((piece for piece in _PADDINGS if piece in pieces), None)


def are_equal(first: Array, second: Array) -> bool:
    """Return whether two matrices are one, or copies of each other."""
    return first is second or (first.shape == second.shape and bool((first == second).all()))


def _with_zeros(rows_VD: Array) -> Array:
    return np.concatenate([rows_VD, np.zeros((1, rows_VD.shape[1]), rows_VD.dtype)])
