"""Attention sub-layers, and a recording of the weights that they compute for one pair of sentences.

A forward hook on each sub-layer computes the weights once more from the sub-layer's own inputs, with the written-out
equation. So training and translation keep their fast kernels, and no layer has a flag. L counts layers.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from transduce.networks.attention_axes import Axis, Scores
from transduce.networks.attention_block import AttentionBlock, Projections

AXES: Mapping[str, tuple[Axis, Axis]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "read"),
    "cross": ("target", "source"),
}
"""Queries and keys of the three kinds of section 3.2.3 of "Attention Is All You Need"."""


class AttentionSublayer(nn.Module):
    """Attention with queries, keys and values by head, called with queries, memory and `visible_BHQK`.

    Its name in the network gives its kind: one named `cross_attention` attends from target to source; any other is the
    self-attention of the part that holds it, `encoder` or `decoder`.
    """

    scores: Scores
    scale: float
    v_HE: Tensor
    """v of v · tanh(q + k); only where scores are additive."""
    heads: int
    W_O: nn.Linear
    """What turns the outputs of all heads, one after the other, into the sub-layer's output."""

    @abstractmethod
    def project(self, query_BQD: Tensor, memory_BKD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values by head."""

    @abstractmethod
    def weights(self, query_BHQE: Tensor, key_BHKE: Tensor, *, visible_BHQK: Tensor | None) -> Tensor:
        """Return the attention weights of every head, shape (B, H, Q, K)."""


def sublayers_by_kind(network: nn.Module) -> dict[str, list[AttentionSublayer]]:
    """Return a network's attention sub-layers by kind, first layer first; a kind may have none."""
    found: dict[str, list[AttentionSublayer]] = {kind: [] for kind in AXES}
    for name, module in network.named_modules():
        if isinstance(module, AttentionSublayer):
            found["cross" if name.endswith("cross_attention") else name.partition(".")[0]].append(module)
    return found


@contextmanager
def without_head(sublayer: AttentionSublayer, head: int) -> Iterator[None]:
    """Remove one head inside the block: W_O reads zeros in place of its output. No weight is changed."""

    def silence(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        by_head = inputs[0].unflatten(-1, (sublayer.heads, -1)).clone()
        by_head[..., head, :] = 0.0
        return (by_head.flatten(start_dim=-2),)

    hook = sublayer.W_O.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        hook.remove()


@torch.no_grad()
def record_attention(network: nn.Module, source: Sequence[int], target: Sequence[int]) -> dict[str, AttentionBlock]:
    """Return what the attention sub-layers compute for one pair, by kind; empty where there are none."""
    recorded: dict[nn.Module, tuple[Tensor, ...]] = {}

    def record(module: nn.Module, inputs: tuple[Tensor, Tensor], named: dict[str, Any], output: Tensor) -> None:
        assert isinstance(module, AttentionSublayer)
        query_BHQE, key_BHKE, value_BHKG = module.project(*inputs)
        weights_BHQK = module.weights(query_BHQE, key_BHKE, visible_BHQK=named.get("visible_BHQK"))
        recorded[module] = (query_BHQE, key_BHKE, value_BHKG, weights_BHQK)

    kinds = {kind: sublayers for kind, sublayers in sublayers_by_kind(network).items() if sublayers}
    modules = [module for sublayers in kinds.values() for module in sublayers]
    hooks = [module.register_forward_hook(record, with_kwargs=True) for module in modules]
    try:
        if modules:
            network(torch.tensor([list(source)]), torch.tensor([list(target)]))
    finally:
        for hook in hooks:
            hook.remove()
    return {kind: _block(*AXES[kind], sublayers, recorded) for kind, sublayers in kinds.items()}


def _block(
    queries: Axis,
    keys: Axis,
    sublayers: Sequence[AttentionSublayer],
    recorded: Mapping[nn.Module, tuple[Tensor, ...]],
) -> AttentionBlock:
    # Each sub-layer saw a batch of one pair: its batch axis becomes the axis of layers.
    layers = zip(*(recorded[module] for module in sublayers), strict=True)
    query_LHQE, key_LHKE, value_LHKG, weights_LHQK = (torch.cat(tensors) for tensors in layers)
    scores = sublayers[0].scores
    additive_LHE = torch.stack([module.v_HE for module in sublayers]) if scores == "additive" else None
    projections = Projections(query_LHQE, key_LHKE, value_LHKG, scores, sublayers[0].scale, additive_LHE)
    return AttentionBlock(queries, keys, weights_LHQK, projections)
