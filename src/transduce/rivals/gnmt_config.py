"""Sizes of the GNMT-like network (`rivals/gnmt.py`), and what follows from them without torch."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from transduce.networks.config import NetworkConfig, Probability, Shapes, named
from transduce.networks.cost import Cost
from transduce.rivals.shapes import additive_shapes, lstm_shapes, numbered, token_shapes


class GnmtConfig(NetworkConfig, frozen=True):
    """Sizes of the GNMT-like network. The defaults are its paper's."""

    kind: Literal["gnmt"] = "gnmt"
    """Which network: `gnmt` is recurrent, deep and residual, with additive attention (Wu et al. 2016)."""
    d_model: PositiveInt = 1024
    """Width of the embeddings and of each layer's h and c."""
    layers: Annotated[int, Field(ge=2)] = 8
    """LSTM layers of the encoder, the lowest of which reads both directions, and of the decoder."""
    alignment_width: PositiveInt = 1024
    """Width of the hidden layer that compares a state with an annotation."""
    dropout: Probability = 0.2
    """Dropout on the embeddings and after each layer, not between positions."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one. Departure: the paper has three."""
    initialization: Literal["glorot", "paper"] = "glorot"
    """Initial weights: `paper` draws all from ±0.04; `glorot` has orthogonal recurrent matrices and forget bias 1."""

    @property
    def depth(self) -> int:
        """The layers of both stacks."""
        return 2 * self.layers

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "A network like that of *Google's Neural Machine Translation System*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"recurrent with attention, {self.layers}+{self.layers} residual LSTM layers, width {self.d_model}"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        d, layers = self.d_model, self.layers
        readers = [lstm_shapes(2 * d if layer == 1 else d, d) for layer in range(1, layers)]
        return {
            **named("matrix", token_shapes(self.vocabulary_size, (d, d), tied=self.tied)),
            **named("forward_reader", lstm_shapes(d, d)),
            **named("backward_reader", lstm_shapes(d, d)),
            **named("readers", numbered(readers)),
            **named("alignment", additive_shapes(d, d, hidden=self.alignment_width)),
            **named("writers", numbered([lstm_shapes(2 * d, d)] * layers)),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which each position waits for the one before it."""
        c, n, m = self, source_length, target_length
        d, a = c.d_model, c.alignment_width
        readers = 2 * 8 * d * d + 12 * d * d + (c.layers - 2) * 8 * d * d + d * a
        writers = c.layers * 12 * d * d + d * a + n * (a + d)
        return Cost(
            {"encoder": 2 * n * readers, "decoder": 2 * m * writers, "output": 2 * m * c.vocabulary_size * d},
            sequential_steps=2 * n + c.layers - 2 + m + c.layers - 1,  # the second layer waits for the backward reader
            path_length=n,
            kept_numbers=(n * (c.layers + 1) + m * c.layers) * 14 * d + m * n * (a + 2),
        )

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        parts = {"matrix": "embeddings", "alignment": "alignment", "writers": "decoder"}
        return parts.get(parameter.partition(".")[0], "encoder")
