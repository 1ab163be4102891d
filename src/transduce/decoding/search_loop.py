"""The loop of every search: run the model, choose tokens, reorder its state, until every sentence is done."""

from typing import Protocol

import numpy as np

from transduce.decoding.hypothesis import Hypothesis
from transduce.networks.stepwise import Ids, State, Stepwise


class SearchState(Protocol):
    """The unfinished outputs of a batch, and the rule by which their next tokens are chosen."""

    @property
    def newest_BW(self) -> Ids:
        """The last token of each beam."""

    def advance(self, stepper: Stepwise[State], state: State, tokens_BW: Ids) -> Ids:
        """Feed the model and choose the next tokens; return which beam each new beam continues, shape (B, W)."""

    def release(self, found: list[list[Hypothesis]]) -> Ids | None:
        """Put the outputs of sentences that are done into `found`, at their places in the original batch.

        Returns the places of the other sentences in the present batch, shape (B,), or None if no sentence is done.
        """


def run_search(stepper: Stepwise[State], source_BS: Ids, search: SearchState) -> list[list[Hypothesis]]:
    """Step until every sentence is done, and return the outputs of each; a sentence that is done leaves the batch."""
    found: list[list[Hypothesis]] = [[] for _ in source_BS]
    if not found:
        return found
    state = stepper.start(source_BS)
    tokens_BW = np.full((len(found), 1), stepper.tokens.start, dtype=np.int64)
    while True:
        beams_BW = search.advance(stepper, state, tokens_BW)
        staying_B = search.release(found)
        if staying_B is not None:
            if not len(staying_B):
                return found
            state = stepper.select(state, staying_B, beams_BW[staying_B])
        elif not _are_in_place(beams_BW, tokens_BW.shape[1]):
            state = stepper.select(state, np.arange(len(tokens_BW)), beams_BW)
        tokens_BW = search.newest_BW


def _are_in_place(beams_BW: Ids, beams: int) -> bool:
    return beams_BW.shape[1] == beams and bool((beams_BW == np.arange(beams)).all())
