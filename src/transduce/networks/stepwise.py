"""What search needs of a model: one more token's log-probabilities at a time, as numpy arrays.

Whatever can `start`, `step` and `select` can be searched: a network of torch, the int8 engine, an ensemble, or a Markov
chain of ten lines, with which the search is tested against exhaustive enumeration.

Rows are sentence-major: beam w of sentence b is row b * W + w, so what comes from the source stays one per sentence.
"""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")

Ids = NDArray[np.int64]
"""Token ids, or places of sentences and beams."""
LogProbabilities = NDArray[np.floating]
"""float32 or float64."""


class Stepwise(Protocol[State]):
    """A model of p(next token | source, tokens so far) that is asked one position at a time."""

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
