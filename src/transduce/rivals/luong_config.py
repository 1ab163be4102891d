"""Sizes of Luong's network (`rivals/luong.py`), and what follows from them without torch."""

from typing import Literal

from pydantic import PositiveInt

from transduce.networks.config import NetworkConfig, Probability, Shapes, linear_shapes, named
from transduce.networks.cost import Cost
from transduce.rivals.shapes import additive_shapes, lstm_stack_shapes, token_shapes


class LuongConfig(NetworkConfig, frozen=True):
    """Sizes of Luong's network. The defaults are its paper's."""

    kind: Literal["luong"] = "luong"
    """Which network: `luong` is recurrent, with multiplicative attention (Luong et al. 2015)."""
    d_model: PositiveInt = 1000
    """Width of the embeddings and of each layer's h and c."""
    layers: PositiveInt = 4
    """LSTM layers of the encoder and of the decoder."""
    scores: Literal["dot", "general", "concat"] = "general"
    """Score of a target state h and a source state h̄: `dot` h · h̄, `general` h · W h̄, `concat` v · tanh(W [h; h̄])."""
    input_feeding: bool = True
    """Feed the attentional vector h̃ of a position to the bottom layer at the next one."""
    reversed_source: bool = True
    """Read the source from its last token to its first."""
    dropout: Probability = 0.0
    """Dropout on the embeddings and after each layer, not between positions; 0.2 in the paper's best models."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one. Departure: the paper has three."""
    initialization: Literal["glorot", "paper"] = "glorot"
    """Initial weights: `paper` draws all from ±0.1; `glorot` has orthogonal recurrent matrices and forget bias 1."""

    @property
    def depth(self) -> int:
        """The layers of both stacks."""
        return 2 * self.layers

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "The network of *Effective Approaches to Attention-based Neural Machine Translation*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"recurrent with {self.scores} attention, {self.layers}+{self.layers} LSTM layers, width {self.d_model}"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        d, layers = self.d_model, self.layers
        compatibility = {
            "dot": {},
            "general": linear_shapes(d, d, bias=False),
            "concat": additive_shapes(d, d, hidden=d),
        }[self.scores]
        return {
            **named("matrix", token_shapes(self.vocabulary_size, (d, d), tied=self.tied)),
            **named("encoder", lstm_stack_shapes(d, d, layers=layers)),
            **named("decoder", lstm_stack_shapes(d, d, layers=layers)),
            **(named("feeding", linear_shapes(d, 4 * d, bias=False)) if self.input_feeding else {}),
            **named("compatibility", compatibility),
            **named("W_c", linear_shapes(2 * d, d, bias=False)),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which each position waits for the one before it."""
        c, n, m = self, source_length, target_length
        d, is_fed = c.d_model, c.input_feeding
        stack = c.layers * 8 * d * d  # multiplications for one token
        keys, queries = {"dot": (0, 0), "general": (d * d, 0), "concat": (d * d, d * d)}[c.scores]
        decoder = stack + (4 * d * d if is_fed else 0) + queries + 2 * n * d + 2 * d * d
        operations = {"encoder": 2 * n * (stack + keys), "decoder": 2 * m * decoder}
        wait = c.layers if is_fed else 1  # with input feeding, all layers of a position wait for the one before
        return Cost(
            {**operations, "output": 2 * m * c.vocabulary_size * d},
            sequential_steps=n + c.layers - 1 + m * wait + (0 if is_fed else c.layers - 1),
            path_length=n,
            kept_numbers=(n + m) * c.layers * 13 * d + m * (4 * d + n * (d + 2 if c.scores == "concat" else 2)),
        )

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        parts = {"matrix": "embeddings", "encoder": "encoder", "compatibility": "alignment"}
        return parts.get(parameter.partition(".")[0], "decoder")
