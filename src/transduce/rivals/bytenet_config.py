"""Sizes of ByteNet (`rivals/bytenet.py`), and what follows from them without torch."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from transduce.networks.config import NetworkConfig, Probability, Shapes, linear_shapes, named
from transduce.networks.cost import Cost
from transduce.rivals.shapes import numbered, token_shapes


class ByteNetConfig(NetworkConfig, frozen=True):
    """Sizes of ByteNet. The defaults are its paper's for translation of characters."""

    kind: Literal["bytenet"] = "bytenet"
    """Which network: `bytenet` is convolutional with dilation, without attention (Kalchbrenner et al. 2016)."""
    d_model: Annotated[int, Field(ge=2, multiple_of=2)] = 1600
    """Width of the embeddings and between blocks; inside a block it is half of it."""
    sets: PositiveInt = 6
    """Sets of blocks of the encoder and of the decoder; each set has a block for every dilation."""
    dilations: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (1, 2, 4, 8, 16)
    """Distance of neighbouring inputs in each block of a set."""
    kernel: PositiveInt = 3
    """Width of the kernels; odd."""
    length_factor: Annotated[float, Field(ge=1.0)] = 1.2
    """a of a · n + b, the columns that the encoder makes for a source of n tokens."""
    length_extra: NonNegativeInt = 0
    """b of a · n + b. [tokens]"""
    dropout: Probability = 0.0
    """Dropout on the embeddings and on the output of each block. Departure: the paper has none."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one. Departure: the paper has three."""

    @model_validator(mode="after")
    def kernels_have_a_middle(self) -> Self:
        """Refuse an even kernel."""
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel = {self.kernel} is even and has no middle. Set it to {self.kernel + 1}.")
        return self

    @property
    def depth(self) -> int:
        """The blocks of both stacks."""
        return 2 * self.sets * len(self.dilations)

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "ByteNet of *Neural Machine Translation in Linear Time*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        blocks = self.depth // 2
        return f"convolutional without attention, {blocks}+{blocks} dilated blocks, width {self.d_model}"

    def columns(self, length: int) -> int:
        """Return how many columns the encoder makes for a source of this many tokens."""
        return math.ceil(self.length_factor * length) + self.length_extra

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        wide, narrow = self.d_model, self.d_model // 2
        block = {
            **named("norm_1", {"weight": (wide,), "bias": (wide,)}),
            **named("W_1", linear_shapes(wide, narrow)),
            **named("norm_2", {"weight": (narrow,), "bias": (narrow,)}),
            **named("W_2", {"weight": (self.kernel * narrow, narrow), "bias_D": (narrow,)}),
            **named("norm_3", {"weight": (narrow,), "bias": (narrow,)}),
            **named("W_3", linear_shapes(narrow, wide)),
        }
        return {
            **named("matrix", token_shapes(self.vocabulary_size, (wide, wide), tied=self.tied)),
            **named("encoder", numbered([block] * (self.depth // 2))),
            **named("decoder", numbered([block] * (self.depth // 2))),
            **named("readout", linear_shapes(wide, wide)),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which the positions of a block do not wait for each other."""
        c, m, columns = self, target_length, self.columns(source_length)
        d, blocks = c.d_model // 2, c.depth // 2
        stack = blocks * (4 + c.kernel) * d * d
        operations = {"encoder": 2 * columns * stack, "decoder": 2 * m * (stack + 4 * d * d)}
        reached, path = 0, 0
        while reached < source_length - 1:  # the blocks that would join both ends of the source
            reached += c.kernel // 2 * c.dilations[path % len(c.dilations)] or source_length
            path += 1
        return Cost(
            {**operations, "output": 2 * m * c.vocabulary_size * 2 * d},
            sequential_steps=2 * blocks,
            path_length=max(1, path),
            kept_numbers=(columns + m) * blocks * (12 + c.kernel) * d,
        )

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        parts = {"encoder": "encoder", "decoder": "decoder", "readout": "output"}
        return parts.get(parameter.partition(".")[0], "embeddings")
