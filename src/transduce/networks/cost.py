"""The cost of a network: parameters by part, operations, sequential steps, path length, memory.

A multiplication and an addition count as two operations; only matrix products count. A backward pass costs two forward
passes. Sequential steps and path length are the columns of Table 1.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.networks.network import Network


@dataclass(frozen=True)
class Cost:
    """The cost of one forward pass over one pair of sentences."""

    operations: Mapping[str, int]
    """Floating-point operations by part of the network."""
    sequential_steps: int
    """Operations that must wait for each other, counted in layers and positions."""
    path_length: int
    """The longest path between two positions, counted in layers and positions."""
    kept_numbers: int
    """Numbers that the backward pass keeps, without the logits."""

    @property
    def forward(self) -> int:
        """The operations of a forward pass."""
        return sum(self.operations.values())

    @property
    def training(self) -> int:
        """The operations of a forward and a backward pass."""
        return 3 * self.forward


def parameters_by_part(network: "Network") -> dict[str, int]:
    """Return how many parameters each part of a network has; a tied matrix counts once."""
    counts: Counter[str] = Counter()
    for name, parameter in network.named_parameters():
        counts[network.part_of(name)] += parameter.numel()
    return dict(counts)


def parameter_count(network: "Network") -> int:
    """Return how many parameters a network has; a tied matrix counts once."""
    return sum(parameter.numel() for parameter in network.parameters())


def training_memory(network: "Network", *, tokens: int, length: int = 25, bytes_per_activation: int = 4) -> int:
    """Estimate the peak memory of training in bytes: weights, gradients, Adam's two moments, activations."""
    state = 4 * 4 * parameter_count(network)
    activations = tokens * network.cost(length, length).kept_numbers // length
    return state + bytes_per_activation * activations


def translation_memory(network: "Network", *, bytes_per_weight: float = 4.0) -> int:
    """Return the bytes of the weights alone, which are nearly all that translating one sentence needs."""
    return int(bytes_per_weight * parameter_count(network))
