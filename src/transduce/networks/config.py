"""The base class of all networks' configurations: sizes, and what follows from them without torch."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field, PositiveInt

from transduce.networks.cost import Cost

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Shapes = Mapping[str, tuple[int, ...]]


class NetworkConfig(BaseModel, frozen=True, extra="forbid"):
    """The sizes that every network has; each kind of network adds its own, and gives its `kind` one value."""

    vocabulary_size: Annotated[int, Field(ge=5)] = 37_000
    """Rows of the embedding; the tokenizer is learned at this size, or less for a small corpus. [pieces] (5.1)"""
    d_model: PositiveInt = 512
    """Width of the embeddings and of every layer's output. (3.1)"""
    kind: str
    """Which network it is."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many layers the network has in all; each has at least one parameter."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the network is, for a model's card, such as "A Transformer of *Attention Is All You Need*"."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """The sizes in a few words, such as "6+6 layers, width 512, 8 heads"."""

    @property
    def longest_sentence(self) -> int | None:
        """The most tokens that a sentence of either side may have, or None if there is no bound."""
        return None

    @abstractmethod
    def parameter_shapes(self) -> Shapes:
        """Return the shape of each parameter by name; a tied matrix has one name."""

    @abstractmethod
    def part_of(self, parameter: str) -> str:
        """Return the part of the network that a parameter belongs to, in words."""

    @abstractmethod
    def cost(self, source_length: int, target_length: int) -> Cost:
        """Return what a forward pass over a pair of these lengths costs."""


def named(prefix: str, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Return the parameters of a part of a network with their names in the whole."""
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def linear_shapes(inputs: int, outputs: int, *, bias: bool = True) -> Shapes:
    """Return the parameters of a linear map."""
    return {"weight": (outputs, inputs), **({"bias": (outputs,)} if bias else {})}
