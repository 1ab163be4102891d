"""Sizes of RNNsearch (`rivals/rnnsearch.py`), and what follows from them without torch."""

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from transduce.networks.config import NetworkConfig, Probability, Shapes, linear_shapes, named
from transduce.networks.cost import Cost
from transduce.rivals.shapes import additive_shapes, gated_unit_shapes, require_one_width, token_shapes


class RnnSearchConfig(NetworkConfig, frozen=True):
    """Sizes of RNNsearch. The defaults are its paper's."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    """Which network: `rnnsearch` is recurrent, with additive attention (Bahdanau et al. 2015)."""
    d_model: PositiveInt = 1000
    """Width of each recurrent state."""
    embedding_width: PositiveInt = 620
    """Width of the embeddings."""
    alignment_width: PositiveInt = 1000
    """Width of the hidden layer that compares a state with an annotation."""
    output_width: PositiveInt = 500
    """Width of the vector before the output matrix, after maxout."""
    dropout: Probability = 0.0
    """Dropout on the embeddings and on the vector before the output matrix. Departure: the paper has none."""
    tied: Literal["none", "inputs", "all"] = "none"
    """Which of the source, target and output matrices are one. Departure: the paper has three."""
    source_vocabulary_size: Annotated[int, Field(ge=5)] | None = None
    """Rows of the source embedding, if sources have a vocabulary of their own. [pieces]"""
    initialization: Literal["glorot", "paper"] = "glorot"
    """Initial weights: `paper` draws the alignment from N(0, 0.001²) and other matrices from N(0, 0.01²), v and biases
    are 0; recurrent matrices are orthogonal in both.
    """

    @model_validator(mode="after")
    def one_matrix_has_one_width(self) -> Self:
        """Refuse one matrix for inputs and output where they differ in width."""
        require_one_width(self.tied, self.embedding_width, self.output_width, name="embedding_width")
        if self.source_vocabulary_size is not None and self.tied != "none":
            raise ValueError(
                f'tied = "{self.tied}" makes source and target embeddings one matrix, and with source_vocabulary_size '
                f'= {self.source_vocabulary_size} they have different rows. Set tied = "none".'
            )
        return self

    @property
    def depth(self) -> int:
        """Three units: two read the source, one writes the target."""
        return 3

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "RNNsearch of *Neural Machine Translation by Jointly Learning to Align and Translate*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"recurrent with attention, states {self.d_model} wide, embeddings {self.embedding_width}"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        d, e, o = self.d_model, self.embedding_width, self.output_width
        return {
            **named(
                "matrix",
                token_shapes(self.vocabulary_size, (e, o), tied=self.tied, source_rows=self.source_vocabulary_size),
            ),
            **named("reader", gated_unit_shapes(e, d)),
            **named("backward_reader", gated_unit_shapes(e, d)),
            **named("first_state", linear_shapes(d, d)),
            **named("alignment", additive_shapes(d, 2 * d, hidden=self.alignment_width)),
            **named("writer", gated_unit_shapes(e, d)),
            **named("writer_context", linear_shapes(2 * d, 3 * d, bias=False)),
            **named("readout", linear_shapes(3 * d + e, 2 * o)),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which each position waits for the one before it."""
        c, n, m = self, source_length, target_length
        d, e, a, o = c.d_model, c.embedding_width, c.alignment_width, c.output_width
        unit, align = 3 * d * (e + d), a * d + n * (a + 2 * d)
        encoder = n * (2 * unit + 2 * d * a) + d * d
        decoder = m * (unit + 6 * d * d + align + 2 * o * (3 * d + e))
        operations = {"encoder": 2 * encoder, "decoder": 2 * decoder, "output": 2 * m * c.vocabulary_size * o}
        kept = n * 2 * (e + 8 * d) + m * (e + 12 * d + 4 * o + n * (a + 2))
        return Cost(operations, sequential_steps=n + m, path_length=n, kept_numbers=kept)

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        parts = {"matrix": "embeddings", "reader": "encoder", "backward_reader": "encoder", "readout": "output"}
        return {**parts, "alignment": "alignment"}.get(parameter.partition(".")[0], "decoder")
