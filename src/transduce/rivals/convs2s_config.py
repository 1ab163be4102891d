"""Sizes of ConvS2S (`rivals/convs2s.py`), and what follows from them without torch."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from transduce.networks.config import NetworkConfig, Probability, Shapes, named
from transduce.networks.cost import Cost
from transduce.rivals.shapes import numbered, require_one_width, token_shapes

_PAPER_LAYERS = ((512, 3),) * 9 + ((1024, 3),) * 4 + ((2048, 1),) * 2


class ConvS2SConfig(NetworkConfig, frozen=True):
    """Sizes of ConvS2S. The defaults are its paper's for English to German."""

    kind: Literal["convs2s"] = "convs2s"
    """Which network: `convs2s` is convolutional, with attention in every decoder layer (Gehring et al. 2017)."""
    d_model: PositiveInt = 768
    """Width of the embeddings."""
    output_width: PositiveInt = 512
    """Width of the vector before the output matrix."""
    encoder: Annotated[tuple[tuple[PositiveInt, PositiveInt], ...], Field(min_length=1)] = _PAPER_LAYERS
    """Width and kernel of each encoder layer; kernels are odd."""
    decoder: Annotated[tuple[tuple[PositiveInt, PositiveInt], ...], Field(min_length=1)] = _PAPER_LAYERS
    """Width and kernel of each decoder layer."""
    positions: PositiveInt = 1024
    """Rows of each learned position table; longer sentences are refused. [positions]"""
    dropout: Probability = 0.2
    """Dropout on the embeddings, on the inputs of every convolution and before the output matrix."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one. Departure: the paper has three."""

    @model_validator(mode="after")
    def sizes_fit(self) -> Self:
        """Refuse one matrix of two widths, and encoder kernels without a middle."""
        require_one_width(self.tied, self.d_model, self.output_width, name="d_model")
        if any(kernel % 2 == 0 for _, kernel in self.encoder):
            raise ValueError(
                f"encoder = {self.encoder} has an even kernel, which has no middle. Choose odd ones, as 3."
            )
        return self

    @property
    def depth(self) -> int:
        """The layers of both stacks."""
        return len(self.encoder) + len(self.decoder)

    @property
    def longest_sentence(self) -> int:
        """The rows of the tables of positions."""
        return self.positions

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "ConvS2S of *Convolutional Sequence to Sequence Learning*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        widths = sorted({width for width, _ in (*self.encoder, *self.decoder)})
        return (
            f"convolutional with attention, {len(self.encoder)}+{len(self.decoder)} layers, "
            f"width {' to '.join(map(str, sorted({widths[0], widths[-1]})))}"
        )

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        e = self.d_model
        encoder = [_layer(before, width, k) for before, width, k in _inputs(self.encoder)]
        decoder = [
            {**_layer(before, width, k), **named("W_d", _map(width, e)), **named("W_c", _map(e, width))}
            for before, width, k in _inputs(self.decoder)
        ]
        return {
            "source_positions": (self.positions, e),
            "target_positions": (self.positions, e),
            **named("matrix", token_shapes(self.vocabulary_size, (e, self.output_width), tied=self.tied)),
            **named("encoder_in", _map(e, self.encoder[0][0])),
            **named("encoder", numbered(encoder)),
            **named("encoder_out", _map(self.encoder[-1][0], e)),
            **named("decoder_in", _map(e, self.decoder[0][0])),
            **named("decoder", numbered(decoder)),
            **named("decoder_out", _map(self.decoder[-1][0], self.output_width)),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which the positions of a layer do not wait for each other."""
        c, n, m, e = self, source_length, target_length, self.d_model
        maps = {name: math.prod(shape) for name, shape in self.parameter_shapes().items() if name.endswith(".v")}
        encoder = n * sum(size for name, size in maps.items() if name.startswith("encoder"))
        decoder = m * (sum(maps.values()) - encoder // n) + len(c.decoder) * 2 * n * m * e
        kept = n * sum((k + 4) * w for w, k in c.encoder) + m * sum((k + 8) * w + 3 * e + 2 * n for w, k in c.decoder)
        reach = max(1, max(k // 2 for _, k in c.encoder))  # of one layer, to either side
        return Cost(
            {"encoder": 2 * encoder, "decoder": 2 * decoder, "output": 2 * m * c.vocabulary_size * c.output_width},
            sequential_steps=len(c.encoder) + len(c.decoder),
            path_length=max(1, -(-(n - 1) // reach)),  # the layers that would join both ends of the source
            kept_numbers=kept,
        )

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        if ".W_d." in parameter or ".W_c." in parameter:
            return "attention"
        part = parameter.partition(".")[0].partition("_")[0]
        return part if part in ("encoder", "decoder") else "positions" if part in ("source", "target") else "embeddings"


def _inputs(layers: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return the input width, the width and the kernel of each layer; the first keeps the width of its input."""
    befores = [layers[0][0], *(width for width, _ in layers)]
    return [(before, width, kernel) for before, (width, kernel) in zip(befores, layers, strict=False)]


def _map(inputs: int, outputs: int, *, kernel: int = 1) -> Shapes:
    return {"v": (outputs, kernel * inputs), "g": (outputs,), "bias": (outputs,)}


def _layer(inputs: int, width: int, kernel: int) -> Shapes:
    skip = {} if inputs == width else named("skip", _map(inputs, width))
    return {**named("convolution", _map(inputs, 2 * width, kernel=kernel)), **skip}
