"""The attention weights that a network computes for one pair of sentences, by kind of attention."""

from dataclasses import dataclass

from torch import Tensor

from transduce.networks.attention_axes import Axis, Scores


@dataclass(frozen=True)
class Projections:
    """Queries, keys and values of every layer and head, and how a query and a key make a score."""

    query_LHQE: Tensor
    key_LHKE: Tensor
    value_LHKG: Tensor
    scores: Scores
    scale: float
    """The factor of a dot product; 1 if scores are additive."""
    additive_LHE: Tensor | None = None
    """v of v · tanh(q + k), where scores are additive."""


@dataclass(frozen=True)
class AttentionBlock:
    """How much each query takes from each key, in every layer and head of one kind of attention."""

    queries: Axis
    keys: Axis
    weights_LHQK: Tensor
    projections: Projections | None = None
    """None where the network has no queries, keys and values to show."""
