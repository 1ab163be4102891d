"""A search in which each sentence has a vocabulary of its own: the tokens of its shortlist, renumbered.

    p(token | …) = softmax over the list alone

The numbers of a list are the places of its tokens, which ascend, so ties fall as they would in the whole vocabulary,
and the special tokens, which come first, keep their numbers. Lists are padded to a multiple of RUN places with what
cannot be chosen: sums are then added up in the same order whatever the length of a neighbour's list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from transduce.decoding.stepwise import State, Stepwise
from transduce.text.tokenizer import EOS, PAD

RUN = 64


@runtime_checkable
class Restrictable(Protocol):
    """A model that can be asked about some tokens alone, and is faster for it."""

    def restrict(self, state: Any, lists_BL: Tensor, is_padding_BL: Tensor) -> None:  # noqa: ANN401
        """From now on answer for each sentence about the tokens of its list alone, in their order.

        Log-probabilities are of the softmax over the list; where it is padded they are -inf.
        """


@dataclass
class ShortlistedState:
    """Where a batch stands, and the list of each of its sentences."""

    inner: Any
    lists_BL: Tensor


class Shortlisted:
    """A model whose tokens are the numbers of lists, one list for each sentence of a batch."""

    def __init__(self, stepper: Stepwise[State], lists: Sequence[Sequence[int]]) -> None:
        self.stepper: Stepwise[Any] = stepper
        self.lists = lists
        self._restrictable = stepper if isinstance(stepper, Restrictable) else None

    @property
    def longest_target(self) -> int | None:
        """The model's own."""
        return self.stepper.longest_target

    def start(self, source_BS: Tensor) -> ShortlistedState:
        """Start the model, and tell it the lists if it can make use of them."""
        lists_BL = padded_lists(self.lists).to(source_BS.device)
        inner = self.stepper.start(source_BS)
        if self._restrictable is not None:
            self._restrictable.restrict(inner, lists_BL, is_padding(lists_BL))
        return ShortlistedState(inner, lists_BL)

    def step(self, state: ShortlistedState, tokens_BW: Tensor) -> Tensor:
        """Return log p of each token of the lists, shape (B, W, L)."""
        log_probabilities = self.stepper.step(state.inner, state.lists_BL.gather(1, tokens_BW))
        if self._restrictable is not None:
            return log_probabilities
        places_BWL = state.lists_BL[:, None, :].expand(-1, tokens_BW.size(1), -1)
        listed_BWL = log_probabilities.gather(2, places_BWL)
        return listed_BWL.masked_fill_(is_padding(state.lists_BL)[:, None, :], -torch.inf).log_softmax(dim=2)

    def select(self, state: ShortlistedState, sentences: Tensor, beams_BW: Tensor) -> ShortlistedState:
        """Select in the model, and keep the lists of those that stay."""
        return ShortlistedState(self.stepper.select(state.inner, sentences, beams_BW), state.lists_BL[sentences])

    def numbers(self, sentence: int, tokens: Sequence[int]) -> list[int]:
        """Return the numbers of tokens in the list of a sentence, which must hold them all."""
        return [self.lists[sentence].index(token) for token in tokens]

    def tokens(self, sentence: int, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens of the list of a sentence that these are the numbers of."""
        return tuple(self.lists[sentence][number] for number in numbers)


def padded_lists(lists: Sequence[Sequence[int]]) -> Tensor:
    """Return lists side by side, all padded with PAD to the next multiple of RUN of the longest."""
    for own in lists:
        assert list(own[: EOS + 1]) == list(range(EOS + 1)), "a list begins with the special tokens"
    width = -(-max(map(len, lists), default=1) // RUN) * RUN
    return torch.tensor([[*own, *[PAD] * (width - len(own))] for own in lists], dtype=torch.int64).view(-1, width)


def is_padding(lists_BL: Tensor) -> Tensor:
    """Return where lists are padded: PAD is a token of its own in their first place only."""
    is_padding_BL = lists_BL == PAD
    is_padding_BL[:, 0] = False
    return is_padding_BL
