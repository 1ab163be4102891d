"""The queries, keys and values of one head, for computing section 3.2.1 step by step for a given sentence.

    score = q · k * scale        weight = softmax over the visible keys        output = Σ weight * v

They are float32, so that computing with them gives the same results as the network.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from transduce.errors import DataError
from transduce.inspection.contract import FloatBlock, HeadNumbersEntry, NumbersEntry
from transduce.inspection.recording import attention_of
from transduce.networks.attention_block import Projections, Scores
from transduce.networks.network import Network


@dataclass(frozen=True)
class HeadNumbers:
    """One head's queries, keys and values for a pair, and how its scores are computed from them."""

    stack: str
    """The name of the head's block."""
    layer: int
    head: int
    scores: Scores
    scale: float
    query_QE: Tensor
    key_KE: Tensor
    value_KG: Tensor
    additive_E: Tensor | None
    """v of v · tanh(q + k), where the scores are additive."""

    def to_entry(self) -> HeadNumbersEntry:
        """Return the numbers in the form of the JSON contract."""
        return HeadNumbersEntry(
            stack=self.stack,
            layer=self.layer,
            head=self.head,
            scores=self.scores,
            scale=self.scale,
            query=_encoded_floats(self.query_QE),
            key=_encoded_floats(self.key_KE),
            value=_encoded_floats(self.value_KG),
            additive=None if self.additive_E is None else _encoded_floats(self.additive_E),
        )


def head_numbers(
    network: Network, source: Sequence[int], target: Sequence[int], stack: str, layer: int, head: int
) -> HeadNumbers:
    """Return the numbers of one head of the block `stack` for a pair of token ids; `layer` and `head` count from 0."""
    blocks = attention_of(network, source, target)
    if stack not in blocks:
        raise DataError(f"There is no {stack} attention in this network; it has {', '.join(blocks)}.")
    layers, heads = blocks[stack].weights_LHQK.shape[:2]
    if not 0 <= layer < layers or not 0 <= head < heads:
        raise DataError(
            f"There is no layer {layer}, head {head} in the {stack} attention: it has layers 0 to "
            f"{layers - 1} and heads 0 to {heads - 1}."
        )
    projections = blocks[stack].projections
    if projections is None:
        raise DataError(f"The {stack} attention of this network has no queries, keys and values to show.")
    additive_LHE = projections.additive_LHE
    return HeadNumbers(
        stack=stack,
        layer=layer,
        head=head,
        scores=projections.scores,
        scale=projections.scale,
        query_QE=projections.query_LHQE[layer, head],
        key_KE=projections.key_LHKE[layer, head],
        value_KG=projections.value_LHKG[layer, head],
        additive_E=None if additive_LHE is None else additive_LHE[layer, head],
    )


def numbers_entry(projections: Projections) -> NumbersEntry:
    """Return the numbers of every head of a block, for a page without a server."""
    return NumbersEntry(
        scores=projections.scores,
        scale=projections.scale,
        query=_encoded_floats(projections.query_LHQE),
        key=_encoded_floats(projections.key_LHKE),
        value=_encoded_floats(projections.value_LHKG),
        additive=None if projections.additive_LHE is None else _encoded_floats(projections.additive_LHE),
    )


def _encoded_floats(numbers: Tensor) -> FloatBlock:
    content = numbers.detach().contiguous().numpy().astype("<f4").tobytes()
    return FloatBlock(shape=list(numbers.shape), base64_f32=base64.b64encode(content).decode("ascii"))
