"""What every head computed for a finished translation, from one teacher-forced pass of the float32 network.

The model does not know that it is watched: a forward hook hands each attention sub-layer's own inputs to the
written-out equation, so training and translation keep their fast kernels and no flag threads through the layers.
L counts layers.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from transduce.errors import ModelError
from transduce.model.attention import MultiHeadAttention
from transduce.model.transformer import Transformer
from transduce.networks.log_probabilities import log_softmax

Stack = Literal["encoder", "decoder", "cross"]
STACKS: tuple[Stack, ...] = ("encoder", "decoder", "cross")


class Attended(NamedTuple):
    """Queries, keys and values of every head of a stack, and how much each query took from each key."""

    query_LHQE: Tensor
    key_LHKE: Tensor
    value_LHKG: Tensor
    weights_LHQK: Tensor


@dataclass(frozen=True)
class Recording:
    """The three stacks' attention for one pair, and what the model thought of every target position."""

    encoder: Attended
    decoder: Attended
    cross: Attended
    log_probabilities_TV: Tensor

    def stack(self, name: Stack) -> Attended:
        """Return one stack's attention by its name."""
        return {"encoder": self.encoder, "decoder": self.decoder, "cross": self.cross}[name]


@torch.no_grad()
def record(model: Transformer, source: Sequence[int], target: Sequence[int]) -> Recording:
    """Run the pair through the network once; `target` are the labels, their end token included."""
    assert not model.training, "dropout would disturb what is shown: call model.eval() first"
    with watched(model) as seen:
        hidden_BTD = model(torch.tensor([list(source)]), torch.tensor([list(target)]))
    recording = Recording(
        encoder=_stacked(seen, attentions_of(model, "encoder")),
        decoder=_stacked(seen, attentions_of(model, "decoder")),
        cross=_stacked(seen, attentions_of(model, "cross")),
        log_probabilities_TV=log_softmax(model.output.logits(hidden_BTD[0])),
    )
    if not recording.log_probabilities_TV.isfinite().all():
        raise ModelError("The model computes values that are not numbers; its training diverged. Use an earlier one.")
    return recording


def attentions_of(model: Transformer, stack: Stack) -> list[MultiHeadAttention]:
    """Return the attention sub-layers of one stack, first layer first."""
    layers = model.encoder.layers if stack == "encoder" else model.decoder.layers
    found = [layer.cross_attention if stack == "cross" else layer.self_attention for layer in layers]
    return [attention for attention in found if isinstance(attention, MultiHeadAttention)]


@contextmanager
def watched(model: Transformer) -> Iterator[dict[nn.Module, Attended]]:
    """Yield a record that each attention sub-layer fills, with a batch (B) in the place of L, when it runs."""
    seen: dict[nn.Module, Attended] = {}

    def keep(module: nn.Module, inputs: tuple[Tensor, Tensor], named: dict[str, Any], output: Tensor) -> None:
        assert isinstance(module, MultiHeadAttention)
        query_BHQE, key_BHKE, value_BHKG = module.project(*inputs)
        weights_BHQK = module.weights(query_BHQE, key_BHKE, visible_BHQK=named.get("visible_BHQK"))
        seen[module] = Attended(query_BHQE, key_BHKE, value_BHKG, weights_BHQK)

    hooks = [
        module.register_forward_hook(keep, with_kwargs=True)
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _stacked(seen: dict[nn.Module, Attended], modules: Sequence[nn.Module]) -> Attended:
    layers = [seen[module] for module in modules]
    return Attended(*(torch.cat(tensors) for tensors in zip(*layers, strict=True)))
