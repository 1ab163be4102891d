"""The interface of a model that runs the whole beam search itself, as the C++ core does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from transduce.networks.stepwise import Ids


@dataclass(frozen=True)
class BeamRequest:
    """The settings of a beam search, and the requirements of each sentence."""

    beam: int
    alternatives: int
    length_penalty: float
    stops_when_full: bool
    minimum_length: int
    limits: Sequence[int]
    """The maximum number of output tokens of each sentence, the end token included."""
    prefixes: Sequence[Sequence[int]]
    """The tokens with which each sentence's outputs begin."""
    lists: Sequence[Sequence[int]]
    """The tokens that each sentence may use, or empty if all may use the whole vocabulary."""
    cancellation: Any = None
    """An object of the model by which another thread can end the search."""


@runtime_checkable
class BeamSearching(Protocol):
    """A model that runs beam search itself, faster and with the results of `decoding.beam_search`."""

    def beam_search(self, source_BS: Ids, request: BeamRequest) -> list[list[tuple[list[int], float]]]:
        """Return the tokens and the log-probability of each sentence's best hypotheses, best first.

        The list of a sentence is empty if no token was possible.
        """
