"""A model in which each sentence has a vocabulary of its own: the tokens of its shortlist, renumbered.

    p(token | …) = softmax over the list alone

A token's number is its place in the list. The special tokens come first, so they have the same numbers in every list;
the others ascend, so ties are decided as in the whole vocabulary. Lists are padded to a multiple of RUN places with
tokens that cannot be chosen, so that the order of additions does not depend on the lengths of the other lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.data.padding import pad_ids
from transduce.networks.stepwise import Booleans, Ids, LogProbabilities, Restrictable, State, Stepwise
from transduce.special_tokens import SpecialTokens

RUN = 64


@dataclass
class ShortlistedState:
    """The model's state, and the list of each sentence of the batch."""

    inner: Any
    lists_BL: Ids
    is_padding_BL: Booleans


class Shortlisted:
    """A model restricted to one list of tokens for each sentence; a token's number is its place in the list."""

    def __init__(self, stepper: Stepwise[State], lists: Sequence[Sequence[int]]) -> None:
        self.stepper: Stepwise[Any] = stepper
        self.lists = lists
        special, number = stepper.tokens, stepper.tokens.ids.index
        assert all(tuple(own[: len(special.ids)]) == special.ids for own in lists), "a list begins with special tokens"
        self.tokens = SpecialTokens(
            padding=number(special.padding),
            unknown=number(special.unknown),
            start=number(special.start),
            end=number(special.end),
        )
        self._restrictable = stepper if isinstance(stepper, Restrictable) else None

    @property
    def source_padding(self) -> int:
        """The model's padding id: sources are not renumbered."""
        return self.stepper.source_padding

    def longest_target(self, source_length: int) -> int | None:
        """Return the model's bound."""
        return self.stepper.longest_target(source_length)

    def start(self, source_BS: Ids) -> ShortlistedState:
        """Start the model, and pass it the lists if it can restrict itself to them."""
        lists_BL, is_padding_BL = padded_lists(self.lists)
        inner = self.stepper.start(source_BS)
        if self._restrictable is not None:
            self._restrictable.restrict(inner, lists_BL, is_padding_BL)
        return ShortlistedState(inner, lists_BL, is_padding_BL)

    def step(self, state: ShortlistedState, tokens_BW: Ids) -> LogProbabilities:
        """Return log p of each token of the lists, shape (B, W, L)."""
        sentences_B1 = np.arange(len(tokens_BW))[:, None]
        log_probabilities = self.stepper.step(state.inner, state.lists_BL[sentences_B1, tokens_BW])
        if self._restrictable is not None:
            return log_probabilities
        listed_BWL = np.take_along_axis(log_probabilities, state.lists_BL[:, None], axis=2)
        np.copyto(listed_BWL, -np.inf, where=state.is_padding_BL[:, None])
        return _log_softmax(listed_BWL)

    def select(self, state: ShortlistedState, sentences_B: Ids, beams_BW: Ids) -> ShortlistedState:
        """Select in the model, and keep the lists of the sentences that stay."""
        inner = self.stepper.select(state.inner, sentences_B, beams_BW)
        return ShortlistedState(inner, state.lists_BL[sentences_B], state.is_padding_BL[sentences_B])

    def numbers_of(self, sentence: int, tokens: Sequence[int]) -> list[int]:
        """Return the numbers of tokens in the list of a sentence, which must hold them all."""
        return [self.lists[sentence].index(token) for token in tokens]

    def tokens_of(self, sentence: int, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens at these places in the list of a sentence."""
        return tuple(self.lists[sentence][number] for number in numbers)


def padded_lists(lists: Sequence[Sequence[int]]) -> tuple[Ids, Booleans]:
    """Return the lists as rows of one array, as long as the longest rounded up to RUN, and where they are padded."""
    width = -(-max(map(len, lists), default=1) // RUN) * RUN
    lists_BL = np.zeros((len(lists), width), dtype=np.int64)
    filled_BL = pad_ids(lists, padding=0)
    lists_BL[:, : filled_BL.shape[1]] = filled_BL
    lengths_B1 = np.array([len(own) for own in lists], dtype=np.int64)[:, None]
    return lists_BL, np.arange(width) >= lengths_B1


def _log_softmax(logits_BWL: LogProbabilities) -> LogProbabilities:
    """Return log softmax over the last axis; it adds every RUN-th term first, so that padding does not change it."""
    logits_BWL = logits_BWL - logits_BWL.max(axis=2, keepdims=True)
    powers_BWNR = np.exp(logits_BWL).reshape(*logits_BWL.shape[:2], -1, RUN)
    normalized_BWL: LogProbabilities = logits_BWL - np.log(powers_BWNR.sum(axis=2).sum(axis=2))[..., None]
    return normalized_BWL
