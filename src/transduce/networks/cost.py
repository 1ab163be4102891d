"""The cost of a network: parameters by part, operations, sequential steps, path length, memory.

A multiplication and an addition count as two operations; only matrix products count. A backward pass costs two forward
passes. Sequential steps and path length are the columns of Table 1.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.networks.config import NetworkConfig


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


def parameters_by_part(config: "NetworkConfig") -> dict[str, int]:
    """Return how many parameters each part of a network of these sizes has; a tied matrix counts once."""
    counts: Counter[str] = Counter()
    for name, shape in config.parameter_shapes().items():
        counts[config.part_of(name)] += math.prod(shape)
    return dict(counts)


def parameter_count(config: "NetworkConfig") -> int:
    """Return how many parameters a network of these sizes has; a tied matrix counts once."""
    return sum(map(math.prod, config.parameter_shapes().values()))


def training_memory(config: "NetworkConfig", *, tokens: int, length: int = 25, bytes_per_activation: int = 4) -> int:
    """Estimate the peak memory of training in bytes: weights, gradients, Adam's two moments, activations."""
    state = 4 * 4 * parameter_count(config)
    activations = tokens * config.cost(length, length).kept_numbers // length
    return state + bytes_per_activation * activations


def translation_memory(config: "NetworkConfig", *, bytes_per_weight: float = 4.0) -> int:
    """Return the bytes of the weights alone, which are nearly all that translating one sentence needs."""
    return int(bytes_per_weight * parameter_count(config))
