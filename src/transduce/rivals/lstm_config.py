"""Sizes of the LSTM without attention (`rivals/lstm.py`), and what follows from them without torch."""

from typing import Literal

from pydantic import PositiveInt

from transduce.networks.config import NetworkConfig, Probability, Shapes, named
from transduce.networks.cost import Cost
from transduce.rivals.shapes import lstm_stack_shapes, token_shapes


class LstmConfig(NetworkConfig, frozen=True):
    """Sizes of the LSTM sequence to sequence network without attention. The defaults are its paper's."""

    kind: Literal["lstm"] = "lstm"
    """Which network: `lstm` is recurrent, without attention (Sutskever et al. 2014)."""
    d_model: PositiveInt = 1000
    """Width of the embeddings and of each layer's h and c."""
    layers: PositiveInt = 4
    """LSTM layers of the encoder and of the decoder."""
    reversed_source: bool = True
    """Read the source from its last token to its first, as the paper found to be better."""
    dropout: Probability = 0.0
    """Dropout on the embeddings and after each layer, not between positions. Departure: the paper has none."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one. Departure: the paper has three."""
    initialization: Literal["glorot", "paper"] = "glorot"
    """Initial weights: `paper` draws all from ±0.08; `glorot` has orthogonal recurrent matrices and forget bias 1."""

    @property
    def depth(self) -> int:
        """The layers of both stacks."""
        return 2 * self.layers

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "The LSTM of *Sequence to Sequence Learning with Neural Networks*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"recurrent without attention, {self.layers}+{self.layers} LSTM layers, width {self.d_model}"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        d, layers = self.d_model, self.layers
        return {
            **named("matrix", token_shapes(self.vocabulary_size, (d, d), tied=self.tied)),
            **named("encoder", lstm_stack_shapes(d, d, layers=layers)),
            **named("decoder", lstm_stack_shapes(d, d, layers=layers)),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which each position waits for the one before it."""
        c, n, m = self, source_length, target_length
        d = c.d_model
        stack = 2 * c.layers * 8 * d * d  # operations for one token
        operations = {"encoder": n * stack, "decoder": m * stack, "output": 2 * m * c.vocabulary_size * d}
        return Cost(
            operations,
            sequential_steps=n + m + 2 * (c.layers - 1),  # a layer may begin as soon as the one below has one state
            path_length=n,
            kept_numbers=(n + m) * c.layers * 13 * d,
        )

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        return {"encoder": "encoder", "decoder": "decoder"}.get(parameter.partition(".")[0], "embeddings")
