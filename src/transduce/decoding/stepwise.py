"""What search needs of a model: one more token's log-probabilities at a time.

Search imports no network. Whatever can `start`, `step` and `select` can be searched: the Transformer below, the int8
engine, an ensemble, or a Markov chain of ten lines, with which the search is tested against exhaustive enumeration.

Rows are sentence-major: beam w of sentence b is row b * W + w, so what comes from the source stays one per sentence.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from transduce.decoding.hypothesis import Hypothesis
from transduce.networks.log_probabilities import log_softmax
from transduce.networks.network import Network
from transduce.text.tokenizer import BOS

State = TypeVar("State")


class Stepwise(Protocol[State]):
    """A model of p(next token | source, tokens so far) that is asked one position at a time."""

    @property
    def longest_target(self) -> int | None:
        """The most tokens that it can predict in a row, or None if there is no such bound."""

    def start(self, source_BS: Tensor) -> State:
        """Return the state of a padded batch of sources (PAD = 0) before any target token, with one beam each."""

    def step(self, state: State, tokens_BW: Tensor) -> Tensor:
        """Feed each beam its newest token and return log p of each next one, shape (B, W, V).

        The first tokens fed are start tokens. `state` may be advanced in place. The result becomes the caller's, who
        writes into it, until the next call.
        """

    def select(self, state: State, sentences: Tensor, beams_BW: Tensor) -> State:
        """Keep the named sentences, in that order, and for each the named ones of its beams.

        `sentences` has shape (B',) and `beams_BW` (B', W'), where W' may differ from the W before: new beam w of new
        sentence b continues the old beam `beams_BW[b, w]` of old sentence `sentences[b]`.
        """


class TransformerStepper:
    """The Transformer, one position at a time over its cache of keys and values."""

    def __init__(self, model: Network) -> None:
        assert not model.training, "dropout would disturb the search: call model.eval() first"
        self.model = model

    @property
    def longest_target(self) -> int | None:
        """The number of learned positions; sinusoids go on for ever."""
        return self.model.longest_sentence

    def start(self, source_BS: Tensor) -> Any:  # noqa: ANN401
        """Encode the sources, which must be where the network is, and return an empty cache."""
        return self.model.start(source_BS)

    def step(self, state: Any, tokens_BW: Tensor) -> Tensor:  # noqa: ANN401
        """Decode one position more; the softmax is taken in float32, or in float64 if the network is."""
        hidden_BWD = self.model.advance(state, tokens_BW)
        return log_softmax(self.model.output.logits(hidden_BWD))

    def select(self, state: Any, sentences: Tensor, beams_BW: Tensor) -> Any:  # noqa: ANN401
        """Reorder the cache in place."""
        return self.model.select(state, sentences, beams_BW)


class Ensemble:
    """Several models as one: the mean of their probabilities. They must share one vocabulary."""

    def __init__(self, members: Sequence[Stepwise[Any]]) -> None:
        assert members, "an ensemble needs at least one model"
        self.members = tuple(members)

    @property
    def longest_target(self) -> int | None:
        """What the member with the shortest reach allows."""
        bounds = [member.longest_target for member in self.members if member.longest_target is not None]
        return min(bounds, default=None)

    def start(self, source_BS: Tensor) -> list[Any]:
        """Start every member."""
        return [member.start(source_BS) for member in self.members]

    def step(self, state: list[Any], tokens_BW: Tensor) -> Tensor:
        """Return log of the mean of the members' probabilities, adding one member at a time."""
        total_BWV = self.members[0].step(state[0], tokens_BW)
        for member, own in zip(self.members[1:], state[1:], strict=True):
            torch.logaddexp(total_BWV, member.step(own, tokens_BW), out=total_BWV)
        return total_BWV.sub_(math.log(len(self.members)))

    def select(self, state: list[Any], sentences: Tensor, beams_BW: Tensor) -> list[Any]:
        """Select in every member."""
        return [member.select(own, sentences, beams_BW) for member, own in zip(self.members, state, strict=True)]


class Walk(Protocol):
    """A batch on its way to its outputs, whatever chooses the next tokens."""

    @property
    def newest_BW(self) -> Tensor:
        """The last token of each beam."""

    def advance(self, log_probabilities_BWV: Tensor) -> Tensor:
        """Choose the next tokens; return which beam each beam from now on continues, shape (B, W)."""

    def release(self, found: list[list[Hypothesis]]) -> Tensor | None:
        """Put the outputs of sentences that are done into `found`, by the places they had in the batch at first.

        Returns where in the present batch those stood that are not done, shape (B,); None if that is all.
        """


@torch.no_grad()  # inference_mode would leave tables in the network that it could not be trained with afterwards
def take_steps(stepper: Stepwise[State], source_BS: Tensor, walk: Walk) -> list[list[Hypothesis]]:
    """Step until every sentence is done, each leaving the batch when it is, and return what was found of each."""
    found: list[list[Hypothesis]] = [[] for _ in range(source_BS.size(0))]
    if not found:
        return found
    state = stepper.start(source_BS)
    tokens_BW = torch.full((len(found), 1), BOS, device=source_BS.device)
    while True:
        beams_BW = walk.advance(stepper.step(state, tokens_BW))
        staying = walk.release(found)
        if staying is not None:
            if not staying.numel():
                return found
            state = stepper.select(state, staying, beams_BW[staying])
        elif not _continue_themselves(beams_BW, tokens_BW.size(1)):
            state = stepper.select(state, torch.arange(tokens_BW.size(0), device=tokens_BW.device), beams_BW)
        tokens_BW = walk.newest_BW


def _continue_themselves(beams_BW: Tensor, beams: int) -> bool:
    return beams_BW.size(1) == beams and bool((beams_BW == torch.arange(beams, device=beams_BW.device)).all())
