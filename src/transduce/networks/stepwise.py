"""What search needs of a model: one more token's log-probabilities at a time, as numpy arrays.

Whatever can `start`, `step` and `select` can be searched: a network of torch, the int8 engine, an ensemble, or a Markov
chain of ten lines, with which the search is tested against exhaustive enumeration. `Restrictable` and `Ranking` are
optional: a model that has them is searched faster, with the same result.

Rows are sentence-major: beam w of sentence b is row b * W + w, so what comes from the source stays one per sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from transduce.special_tokens import SpecialTokens

State = TypeVar("State")

Ids = NDArray[np.int64]
"""Token ids, or places of sentences and beams."""
LogProbabilities = NDArray[np.floating]
"""float32 or float64."""
Booleans = NDArray[np.bool_]


class Stepwise(Protocol[State]):
    """A model of p(next token | source, tokens so far) that is asked one position at a time."""

    @property
    def source_padding(self) -> int:
        """The id that pads its sources."""

    @property
    def tokens(self) -> SpecialTokens:
        """The special tokens of its outputs."""

    def longest_target(self, source_length: int) -> int | None:
        """Return the most tokens that it can predict for a source of this length, or None if nothing bounds them."""

    def start(self, source_BS: Ids) -> State:
        """Return the state of a padded batch of sources before any target token, with one beam each."""

    def step(self, state: State, tokens_BW: Ids) -> LogProbabilities:
        """Feed each beam its newest token and return log p of each next one, shape (B, W, V).

        The first tokens fed are start tokens. `state` may be advanced in place. The caller may write into the result
        until the next call.
        """

    def select(self, state: State, sentences_B: Ids, beams_BW: Ids) -> State:
        """Keep the named sentences, in that order, and for each the named ones of its beams.

        `sentences_B` has shape (B',) and `beams_BW` (B', W'), where W' may differ from the W before: new beam w of new
        sentence b continues the old beam `beams_BW[b, w]` of old sentence `sentences_B[b]`.
        """


@runtime_checkable
class Restrictable(Protocol):
    """A model that can be asked about some tokens alone, and is faster for it."""

    def restrict(self, state: Any, lists_BL: Ids, is_padding_BL: Booleans) -> None:  # noqa: ANN401
        """From now on answer for each sentence about the tokens of its list alone, in their order.

        Log-probabilities are of the softmax over the list; where it is padded they are -inf.
        """


@dataclass(frozen=True)
class BestExtensions:
    """The best one-token extensions of each sentence's beams, C for each sentence, best first.

    Equal ones are in the order of their beams, then of their tokens. Log-probability -inf marks an impossible one.
    """

    log_probabilities_BC: LogProbabilities
    """Of the whole extended hypothesis."""
    beams_BC: Ids
    """The beam that each extends."""
    tokens_BC: Ids
    """The token that each adds."""


@runtime_checkable
class Ranking(Protocol):
    """A model that can choose the best extensions itself, so that only those are copied from its device."""

    prefers_ranking: bool
    """Whether that is faster than to copy all log-probabilities."""

    def step_best(
        self,
        state: Any,  # noqa: ANN401
        tokens_BW: Ids,
        alive_BW: LogProbabilities,
        *,
        count: int,
        forbidden: Sequence[int],
    ) -> BestExtensions:
        """Step, and return the `count` best extensions of each sentence, or all there are.

        `alive_BW` holds the log-probability of each beam before the step. `forbidden` tokens are impossible.
        """
