"""The queries, keys and values of one head, for computing section 3.2.1 step by step for a given sentence.

    score = q · k * scale        weight = softmax over the visible keys        output = Σ weight * v

They are float32, so that computing with them gives the same results as the network.
"""

import base64
from collections.abc import Sequence

from torch import Tensor

from transduce.errors import DataError
from transduce.inspection.contract import FloatBlock, HeadNumbersEntry, NumbersEntry
from transduce.inspection.recording import Attending, attention_of
from transduce.networks.attention_block import Projections


def head_numbers(
    network: Attending, source: Sequence[int], target: Sequence[int], stack: str, layer: int, head: int
) -> HeadNumbersEntry:
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
    found = blocks[stack].projections
    if found is None:
        raise DataError(f"The {stack} attention of this network has no queries, keys and values to show.")
    query_QE, key_KE, value_KG = (n[layer, head] for n in (found.query_LHQE, found.key_LHKE, found.value_LHKG))
    additive_E = None if found.additive_LHE is None else found.additive_LHE[layer, head]
    numbers = numbers_entry(Projections(query_QE, key_KE, value_KG, found.scores, found.scale, additive_E))
    return HeadNumbersEntry(stack=stack, layer=layer, head=head, **dict(numbers))


def numbers_entry(projections: Projections) -> NumbersEntry:
    """Return the numbers of a block (of every head, for a page without a server, or of one) in the JSON's form."""
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
