"""The numbers behind one head: q, k and v, enough to follow section 3.2.1 step by step on one's own sentence.

    score = q · k * scale        weight = softmax over the visible keys        output = Σ weight * v

They are float32, so that what a reader recomputes from them is what the network computed.
"""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transduce.errors import DataError
from transduce.inspection.contract import FloatBlock, HeadNumbersEntry, NumbersEntry, StackNumbersEntry
from transduce.inspection.recording import STACKS, Recording, Stack, attentions_of, record
from transduce.model.transformer import Transformer

Scores = Literal["scaled", "unscaled", "additive"]


@dataclass(frozen=True)
class HeadNumbers:
    """One head's queries, keys and values for a pair, and how its scores are made of them."""

    stack: Stack
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
        """Return them as the contract writes them."""
        return HeadNumbersEntry(
            stack=self.stack,
            layer=self.layer,
            head=self.head,
            scores=self.scores,
            scale=self.scale,
            query=encoded_floats(self.query_QE),
            key=encoded_floats(self.key_KE),
            value=encoded_floats(self.value_KG),
            additive=None if self.additive_E is None else encoded_floats(self.additive_E),
        )


def head_numbers(
    model: Transformer, source: Sequence[int], target: Sequence[int], stack: Stack, layer: int, head: int
) -> HeadNumbers:
    """Return the numbers of one head, counted from 0, for token ids that both end in EOS."""
    attentions = attentions_of(model, stack)
    heads = model.config.heads
    if not 0 <= layer < len(attentions) or not 0 <= head < heads:
        raise DataError(
            f"There is no layer {layer}, head {head} in the {stack} attention: it has layers 0 to "
            f"{len(attentions) - 1} and heads 0 to {heads - 1}."
        )
    attended, attention = record(model, source, target).stack(stack), attentions[layer]
    return HeadNumbers(
        stack=stack,
        layer=layer,
        head=head,
        scores=model.config.scores,
        scale=scale_of(model),
        query_QE=attended.query_LHQE[layer, head],
        key_KE=attended.key_LHKE[layer, head],
        value_KG=attended.value_LHKG[layer, head],
        additive_E=attention.v_HE[head].detach() if model.config.scores == "additive" else None,
    )


def all_numbers(model: Transformer, recording: Recording) -> NumbersEntry:
    """Return the numbers of every head of a recording, for a page that has no server to ask."""
    entries = {}
    for stack in STACKS:
        attended = recording.stack(stack)
        vectors = [attention.v_HE.detach() for attention in attentions_of(model, stack) if hasattr(attention, "v_HE")]
        entries[stack] = StackNumbersEntry(
            query=encoded_floats(attended.query_LHQE),
            key=encoded_floats(attended.key_LHKE),
            value=encoded_floats(attended.value_LHKG),
            additive=encoded_floats(torch.stack(vectors)) if vectors else None,
        )
    return NumbersEntry(scores=model.config.scores, scale=scale_of(model), **entries)


def scale_of(model: Transformer) -> float:
    """Return what scores are multiplied by: 1 / √d_k unless the model's scores are not scaled."""
    return 1.0 / math.sqrt(model.config.query_width) if model.config.scores == "scaled" else 1.0


def encoded_floats(numbers: Tensor) -> FloatBlock:
    """Return a tensor as base64 of little-endian float32."""
    content = numbers.contiguous().numpy().astype("<f4").tobytes()
    return FloatBlock(shape=list(numbers.shape), base64_f32=base64.b64encode(content).decode("ascii"))
