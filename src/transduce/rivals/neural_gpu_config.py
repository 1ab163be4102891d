"""Sizes of the Extended Neural GPU (`rivals/neural_gpu.py`), and what follows from them without torch."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from transduce.networks.config import NetworkConfig, Probability, Shapes, named
from transduce.networks.cost import Cost
from transduce.rivals.shapes import numbered, token_shapes


class NeuralGpuConfig(NetworkConfig, frozen=True):
    """Sizes of the Extended Neural GPU. The defaults are those of its authors' code."""

    kind: Literal["neural-gpu"] = "neural-gpu"
    """Which network: `neural-gpu` updates a whole tensor at every step (Kaiser and Bengio 2016)."""
    d_model: PositiveInt = 64
    """Maps of the state, m."""
    height: PositiveInt = 4
    """Rows of the state at each position, w."""
    kernel: PositiveInt = 3
    """Width of the kernels along positions; odd."""
    kernel_height: PositiveInt = 3
    """Width of the kernels along the height; odd."""
    layers: PositiveInt = 2
    """Gated convolutions of each step of the encoder and of the decoder."""
    length_factor: Annotated[float, Field(ge=1.0)] = 1.5
    """a of N = ⌈a · n⌉ + b, the positions of the state for a source of n tokens. Longer targets are left out."""
    length_extra: NonNegativeInt = 8
    """b of N = ⌈a · n⌉ + b. [tokens]"""
    dropout: Probability = 0.1
    """Dropout on the state, times 3/√N, at each step."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one."""

    @model_validator(mode="after")
    def kernels_have_a_middle(self) -> Self:
        """Refuse even kernels."""
        if self.kernel % 2 == 0 or self.kernel_height % 2 == 0:
            raise ValueError(f"kernel = {self.kernel} and kernel_height = {self.kernel_height} must be odd, such as 3.")
        return self

    @property
    def depth(self) -> int:
        """The gated convolutions of encoder and decoder."""
        return 2 * self.layers

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "The Extended Neural GPU of *Can Active Memory Replace Attention?*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"active memory, {self.layers}+{self.layers} gated convolutions, {self.height} x {self.d_model} numbers"

    def state_positions(self, length: int) -> int:
        """Return N, the positions of the state for a source of this many tokens."""
        return math.ceil(self.length_factor * length) + self.length_extra

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        m, places = self.d_model, self.kernel * self.kernel_height
        unit = {
            "gates_bias": (2 * m,),
            "candidate_bias": (m,),
            "gates.weight": (places * 2 * m, m),
            "candidate.weight": (places * m, m),
        }
        return {
            **named("matrix", token_shapes(self.vocabulary_size, (m, m), tied=self.tied)),
            **named("norm", {"weight": (m,), "bias": (m,)}),
            **named("encoder", numbered([unit] * self.layers)),
            **named("decoder", numbered([{**unit, "tape.weight": (places * 3 * m, m)}] * self.layers)),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass: every step goes over the whole state."""
        c, m, positions = self, target_length, self.state_positions(source_length)
        state = positions * c.height * c.d_model
        step = 2 * c.layers * 3 * state * c.kernel * c.kernel_height * c.d_model
        operations = {"encoder": positions * step, "decoder": 2 * m * step}
        return Cost(
            {**operations, "output": 2 * m * c.vocabulary_size * c.d_model},
            sequential_steps=(positions + m) * c.layers,
            path_length=max(1, math.ceil((source_length - 1) / max(1, c.kernel // 2))),
            kept_numbers=(8 * positions + 12 * m) * c.layers * state,
        )

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        parts = {"matrix": "embeddings", "norm": "encoder", "encoder": "encoder"}
        return parts.get(parameter.partition(".")[0], "decoder")
