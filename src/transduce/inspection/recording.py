"""The attention and the log-probabilities of a network for a finished translation, from one teacher-forced pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from transduce.errors import ModelError
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.config import NetworkConfig
from transduce.networks.log_probabilities import log_softmax
from transduce.networks.network import Network


class Attending(Protocol):
    """A network whose attention can be shown: a `Network` or a text encoder."""

    training: bool

    @property
    def config(self) -> NetworkConfig:
        """Its sizes."""

    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the attention of one pair by kind."""


@dataclass(frozen=True)
class Recording:
    """The attention of one pair by kind, and the log-probability of every token at every target position."""

    blocks: Mapping[str, AttentionBlock]
    log_probabilities_TV: Tensor


@torch.no_grad()
def record(network: Network, source: Sequence[int], target: Sequence[int]) -> Recording:
    """Return the recording of one pass of a pair through the network; `target` holds the tokens to predict."""
    blocks = attention_of(network, source, target)
    hidden_BTD = network(torch.tensor([list(source)]), torch.tensor([list(target)]))
    recording = Recording(blocks, log_softmax(network.output.logits(hidden_BTD[0])))
    if not recording.log_probabilities_TV.isfinite().all():
        raise ModelError("The model computes values that are not numbers; its training diverged. Use an earlier one.")
    return recording


@torch.no_grad()
def attention_of(network: Attending, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
    """Return the attention of one pair by kind; a network without attention is refused."""
    assert not network.training, "dropout would change the weights: call network.eval() first"
    blocks = network.attention(source, target)
    if not blocks:
        raise ModelError(f"This network (kind {network.config.kind}) has no attention to show.")
    lengths = {"source": len(source), "target": len(target), "read": len(target)}
    for name, block in blocks.items():
        expected = tuple(sum(lengths[part] for part in axis.split("+")) for axis in (block.queries, block.keys))
        assert block.weights_LHQK.shape[2:] == expected, f"the weights of {name} do not have the shape of its axes"
    return blocks
