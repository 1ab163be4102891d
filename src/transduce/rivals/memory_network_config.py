"""Sizes of the memory network (`rivals/memory_network.py`), and what follows from them without torch."""

from typing import Literal

from pydantic import PositiveInt

from transduce.networks.config import NetworkConfig, Probability, Shapes
from transduce.networks.cost import Cost
from transduce.rivals.shapes import TIES


class MemoryNetworkConfig(NetworkConfig, frozen=True):
    """Sizes of the memory network. The defaults are those of its paper's language model."""

    kind: Literal["memory-network"] = "memory-network"
    """Which network: `memory-network` attends in several hops to single tokens (Sukhbaatar et al. 2015)."""
    d_model: PositiveInt = 150
    """Width of the embeddings and of the query."""
    hops: PositiveInt = 7
    """How often the query reads the memory."""
    positions: PositiveInt = 256
    """Rows of each table of positions; longer sentences are refused. [positions]"""
    dropout: Probability = 0.0
    """Dropout on the query at each hop. Departure: the paper has none."""
    tied: Literal["none", "inputs", "all"] = "none"
    """`none` has the paper's four matrices A, B, C and W; with `inputs`, B is A; with `all`, W is C as well."""
    initialization: Literal["glorot", "paper"] = "paper"
    """Initial weights: `paper` draws all from N(0, 0.1²); `glorot` draws tables from N(0, 1 / d_model)."""

    @property
    def depth(self) -> int:
        """Memory and query: the hops share their weights."""
        return 2

    @property
    def longest_sentence(self) -> int:
        """The rows of the tables of positions."""
        return self.positions

    @property
    def title(self) -> str:
        """The network and its paper."""
        return "A transduction model after *End-To-End Memory Networks*"

    @property
    def in_words(self) -> str:
        """The sizes in a few words."""
        return f"memory network, {self.hops} hops, width {self.d_model}"

    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name."""
        size, d = self.vocabulary_size, self.d_model
        b_is_a, w_is_c = TIES[self.tied]
        return {
            "A_VD": (size, d),
            "C_VD": (size, d),
            **({} if b_is_a else {"B_VD": (size, d)}),
            **({} if w_is_c else {"W_VD": (size, d)}),
            **dict.fromkeys(("T_A_PD", "T_C_PD", "S_A_PD", "S_C_PD"), (self.positions, d)),
            "b_D": (d,),
            "H.weight": (d, d),
        }

    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return the cost of a forward pass, in which each hop waits for the one before it."""
        c, n, m = self, source_length, target_length
        hop = c.d_model * (c.d_model + 2 * n + 4 * m)
        return Cost(
            {"hops": 2 * m * c.hops * hop, "output": 2 * m * c.vocabulary_size * c.d_model},
            sequential_steps=c.hops,
            path_length=1,
            kept_numbers=m * c.hops * (6 * c.d_model + 3 * (n + m)) + 2 * (n + m) * c.d_model,
        )

    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""
        if parameter.endswith("_PD"):
            return "positions"
        return "hops" if parameter.startswith(("H.", "b_D")) else "embeddings"
