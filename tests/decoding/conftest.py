"""A model of a few lines for the search to search, whose next token may depend on every token before it.

Tests name its type under TYPE_CHECKING only, and get it as a fixture: pytest imports no test module by name.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from transduce.networks.stepwise import Ids
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

BOS, EOS = OWN_SPECIAL_TOKENS.start, OWN_SPECIAL_TOKENS.end


@dataclass
class TableState:
    sentences_B: Ids
    histories_BW: Ids


class TableModel:
    """p(next) is looked up by the source's first token and by a number made of the tokens so far.

    `table_NMV` holds probabilities for N sources and M histories. A history becomes (history · memory + token) mod M:
    with memory 0 this is a Markov chain; with more, beams that are mixed up change the result.
    """

    A, B = 4, 5  # the two symbols of the chains of two

    def __init__(
        self, table_NMV: NDArray[np.floating], *, memory: int = 0, tokens: SpecialTokens = OWN_SPECIAL_TOKENS
    ) -> None:
        with np.errstate(divide="ignore"):
            self.log_table_NMV = np.log(table_NMV)
        self.memory, self.tokens = memory, tokens
        self.source_padding = tokens.padding
        self.bound: int | None = None
        self.rows_of_step: list[int] = []

    @classmethod
    def chain(cls, *, start: list[float], after_a: list[float], after_b: list[float]) -> "TableModel":
        """Return a Markov chain over the end token, a and b, in this order."""
        table_MV = np.zeros((6, 6))
        for row, probabilities in ((BOS, start), (cls.A, after_a), (cls.B, after_b)):
            table_MV[row, [EOS, cls.A, cls.B]] = probabilities
        return cls(table_MV[None])

    @classmethod
    def random(cls, seed: int, *, symbols: int, sources: int = 1) -> "TableModel":
        """Return a model of `symbols` tokens beside the special ones, in which every token before matters."""
        weights_NMV = np.exp(1.5 * np.random.default_rng(seed).standard_normal((sources, 101, 4 + symbols)))
        return cls(weights_NMV / weights_NMV.sum(axis=-1, keepdims=True), memory=7)

    def longest_target(self, source_length: int) -> int | None:
        return self.bound

    def start(self, source_BS: Ids) -> TableState:
        return TableState(source_BS[:, 0] % len(self.log_table_NMV), np.zeros_like(source_BS[:, :1]))

    def step(self, state: TableState, tokens_BW: Ids) -> NDArray[np.floating]:
        self.rows_of_step.append(tokens_BW.size)
        state.histories_BW = (state.histories_BW * self.memory + tokens_BW) % self.log_table_NMV.shape[1]
        log_probabilities_BWV: NDArray[np.floating] = self.log_table_NMV[state.sentences_B[:, None], state.histories_BW]
        return log_probabilities_BWV

    def select(self, state: TableState, sentences_B: Ids, beams_BW: Ids) -> TableState:
        return TableState(state.sentences_B[sentences_B], state.histories_BW[sentences_B[:, None], beams_BW])

    def log_probabilities(self, source: int, tokens: tuple[int, ...]) -> list[float]:
        """Return log p of every next token after `tokens`, by looking it up without any state."""
        history = 0
        for token in (self.tokens.start, *tokens):
            history = (history * self.memory + token) % self.log_table_NMV.shape[1]
        row: list[float] = self.log_table_NMV[source % len(self.log_table_NMV), history].tolist()
        return row


@pytest.fixture(scope="session")
def table_model() -> type[TableModel]:
    return TableModel
