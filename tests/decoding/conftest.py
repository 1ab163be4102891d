"""A model of a few lines for the search to search, whose next token may depend on every token before it.

Tests name its type under TYPE_CHECKING only, and get it as a fixture: pytest imports no test module by name.
"""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from transduce.text.tokenizer import BOS, EOS


@dataclass
class TableState:
    sentences_B: Tensor
    histories_BW: Tensor


class TableModel:
    """p(next) is looked up by the source's first token and by a number made of the tokens so far.

    `table_NMV` holds probabilities for N sources and M histories. A history becomes (history · memory + token) mod M:
    with memory 0 this is a Markov chain; with more, beams that are mixed up change the result.
    """

    A, B = 4, 5  # the two symbols of the chains of two

    def __init__(self, table_NMV: Tensor, *, memory: int = 0) -> None:
        self.log_table_NMV = table_NMV.log()
        self.memory = memory
        self.longest_target: int | None = None
        self.rows_of_step: list[int] = []

    @classmethod
    def chain(cls, *, start: list[float], after_a: list[float], after_b: list[float]) -> "TableModel":
        """Return a Markov chain over the end token, a and b, in this order."""
        table_MV = torch.zeros(6, 6, dtype=torch.float64)
        for row, probabilities in ((BOS, start), (cls.A, after_a), (cls.B, after_b)):
            table_MV[row, [EOS, cls.A, cls.B]] = torch.tensor(probabilities, dtype=torch.float64)
        return cls(table_MV[None])

    @classmethod
    def random(cls, seed: int, *, symbols: int, sources: int = 1) -> "TableModel":
        """Return a model of `symbols` tokens beside the special ones, in which every token before matters."""
        generator = torch.Generator().manual_seed(seed)
        logits_NMV = torch.randn(sources, 101, 4 + symbols, generator=generator, dtype=torch.float64) * 1.5
        return cls(logits_NMV.softmax(dim=-1), memory=7)

    def start(self, source_BS: Tensor) -> TableState:
        return TableState(source_BS[:, 0] % self.log_table_NMV.size(0), torch.zeros_like(source_BS[:, :1]))

    def step(self, state: TableState, tokens_BW: Tensor) -> Tensor:
        self.rows_of_step.append(tokens_BW.numel())
        state.histories_BW = (state.histories_BW * self.memory + tokens_BW) % self.log_table_NMV.size(1)
        return self.log_table_NMV[state.sentences_B[:, None], state.histories_BW]

    def select(self, state: TableState, sentences: Tensor, beams_BW: Tensor) -> TableState:
        return TableState(state.sentences_B[sentences], state.histories_BW[sentences].gather(1, beams_BW))

    def log_probabilities(self, source: int, tokens: tuple[int, ...]) -> list[float]:
        """Return log p of every next token after `tokens`, by looking it up without any state."""
        history = 0
        for token in (BOS, *tokens):
            history = (history * self.memory + token) % self.log_table_NMV.size(1)
        row: list[float] = self.log_table_NMV[source % self.log_table_NMV.size(0), history].tolist()
        return row


@pytest.fixture(scope="session")
def table_model() -> type[TableModel]:
    return TableModel
