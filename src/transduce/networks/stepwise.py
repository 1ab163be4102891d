"""The interface of a model for search: the log-probabilities of the next token, one position at a time, in numpy.

Search works with any object that has `start`, `step` and `select`: a torch network, the int8 engine, an ensemble, or a
Markov chain of ten lines, with which tests compare the search to exhaustive enumeration. `Restrictable` and `Ranking`
are optional: they make the search faster and do not change its result.

Rows are sentence-major: beam w of sentence b is row b * W + w, so the beams of a sentence can share its source tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from transduce.errors import ModelError
from transduce.special_tokens import SpecialTokens

State = TypeVar("State")

Ids = NDArray[np.int64]
"""Token ids, or places of sentences and beams."""
LogProbabilities = NDArray[np.floating]
"""float32 or float64."""
Booleans = NDArray[np.bool_]


def not_numbers() -> ModelError:
    """Return the error of a model whose probabilities are NaN."""
    return ModelError(
        "the model's probabilities are not numbers (NaN): its weights are damaged, or its training diverged. "
        "Take an earlier checkpoint, or use float32 if it ran in a lower precision."
    )


class Stepwise(Protocol[State]):
    """A model of p(next token | source, tokens so far) that is evaluated one position at a time."""

    @property
    def source_padding(self) -> int:
        """The id that pads its sources."""

    @property
    def tokens(self) -> SpecialTokens:
        """The special tokens of its outputs."""

    def longest_target(self, source_length: int) -> int | None:
        """Return the most tokens that it can predict for a source of this length, or None if there is no bound."""

    def start(self, source_BS: Ids) -> State:
        """Return the state of a padded batch of sources before any target token, with one beam each."""

    def step(self, state: State, tokens_BW: Ids) -> LogProbabilities:
        """Feed each beam its newest token and return log p of each next one, shape (B, W, V).

        The first tokens fed are start tokens. `state` may be advanced in place. The caller may write into the result
        until the next call.
        """

    def select(self, state: State, sentences_B: Ids, beams_BW: Ids) -> State:
        """Keep the sentences `sentences_B`, in that order, and for each of them the beams `beams_BW`.

        `sentences_B` has shape (B',) and `beams_BW` (B', W'), where W' may differ from the W before: new beam w of new
        sentence b continues the old beam `beams_BW[b, w]` of old sentence `sentences_B[b]`.
        """


@runtime_checkable
class Restrictable(Protocol):
    """A model that can compute the log-probabilities of a list of tokens only, which is faster."""

    def restrict(self, state: Any, lists_BL: Ids, is_padding_BL: Booleans) -> None:  # noqa: ANN401
        """Make later steps return, for each sentence, only the tokens of its list, in the order of the list.

        The softmax is over the list; log-probabilities of its padding are -inf.
        """


@dataclass(frozen=True)
class BestExtensions:
    """The best one-token extensions of each sentence's beams, C for each sentence, best first.

    Extensions with equal sums are in the order of their beams, then of their tokens. Log-probability -inf marks an
    impossible extension.
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
    """Whether `step_best` is faster than copying all log-probabilities."""

    def step_best(
        self,
        state: Any,  # noqa: ANN401
        tokens_BW: Ids,
        alive_BW: LogProbabilities,
        *,
        count: int,
        forbidden: Sequence[int],
    ) -> BestExtensions:
        """Step, and return the `count` best extensions of each sentence, or all if there are fewer.

        `alive_BW` holds the log-probability of each beam before the step. `forbidden` tokens are impossible.
        """
