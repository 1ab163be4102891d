"""Attention weights of a finished translation, from one teacher-forced pass of the float32 network.

The model does not know that it is watched: a forward hook hands each attention sub-layer's own inputs to the
written-out equation, so training and translation keep their fast kernels and no flag threads through the layers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transduce.model.attention import MultiHeadAttention
from transduce.model.log_probabilities import log_softmax
from transduce.model.transformer import Transformer


@dataclass(frozen=True)
class Recording:
    """The weights of every layer (L) and head for one pair, and what the model thought of each target token."""

    encoder_LHSS: Tensor
    decoder_LHTT: Tensor
    cross_LHTS: Tensor
    log_probabilities_TV: Tensor


@torch.no_grad()
def record(model: Transformer, source: list[int], target: list[int]) -> Recording:
    """Run the pair through the network once; `target` are the labels, their end token included."""
    assert not model.training, "dropout would disturb what is shown: call model.eval() first"
    with watched(model) as weights:
        hidden_BTD = model(torch.tensor([source]), torch.tensor([target]))
    logits_TV = hidden_BTD[0] @ model.output_matrix_VD.T
    layers = model.decoder.layers
    return Recording(
        encoder_LHSS=_stacked(weights, [layer.self_attention for layer in model.encoder.layers]),
        decoder_LHTT=_stacked(weights, [layer.self_attention for layer in layers]),
        cross_LHTS=_stacked(weights, [layer.cross_attention for layer in layers]),
        log_probabilities_TV=log_softmax(logits_TV),
    )


@contextmanager
def watched(model: Transformer) -> Iterator[dict[nn.Module, Tensor]]:
    """Yield a record that each attention sub-layer fills with its weights, shape (B, H, Q, K), when it runs."""
    weights: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, inputs: tuple[Tensor, Tensor], named: dict[str, Any], output: Tensor) -> None:
        assert isinstance(module, MultiHeadAttention)
        query_BHQE, key_BHKE, _ = module.project(*inputs)
        weights[module] = module.weights(query_BHQE, key_BHKE, visible_BHQK=named.get("visible_BHQK"))

    hooks = [
        module.register_forward_hook(keep, with_kwargs=True)
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    ]
    try:
        yield weights
    finally:
        for hook in hooks:
            hook.remove()


def _stacked(weights: dict[nn.Module, Tensor], modules: list[Any]) -> Tensor:
    return torch.stack([weights[module][0] for module in modules])
