"""Beam search for outputs that are trees over given words: brackets balanced, each word used once, in order (6.3).

A hypothesis is a row of open brackets and a count of words used. From these follows which symbols may come next:

    (NP    while a word is left, if the rest of the tree still fits within the limit
    XX     while a word is left
    )NP    if NP is the innermost open bracket and is not empty
    end    if no bracket is open and no word is left

All other symbols get the log-probability -inf, and the search is that of `beam_search`. So its first output is the
most probable one wherever that is a tree already, and every output is a tree: a symbol is always allowed, because a
bracket opens only if there is room to close it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.request import OutputRequest
from transduce.errors import DataError
from transduce.networks.stepwise import Booleans, Ids, LogProbabilities, State, Stepwise
from transduce.text.trees import DEEPEST
from transduce.text.word_tokenizer import WordTokenizer


@dataclass(frozen=True, eq=False)
class TreeSymbols:
    """The tokens of a target vocabulary by what they do to a tree."""

    size: int
    end: int
    opening: dict[int, str]
    """The label that a token opens."""
    closing: dict[str, int]
    """The token that closes a label."""
    leaves: frozenset[int]

    @classmethod
    def of(cls, tokenizer: WordTokenizer) -> Self:
        """Return the symbols of a vocabulary; a label that cannot be closed is never opened."""
        words = tokenizer.words
        closing = {word[1:]: token for word, token in words.items() if word.startswith(")")}
        opening = {token: word[1:] for word, token in words.items() if word.startswith("(") and word[1:] in closing}
        leaves = frozenset(token for word, token in words.items() if word[0] not in "()")
        if not opening or not leaves:
            raise DataError("This model writes no trees: its vocabulary has no brackets. Train one on a .ptb file.")
        return cls(tokenizer.vocabulary_size, tokenizer.special.end, opening, closing, leaves)

    @lru_cache(maxsize=1024)  # noqa: B019 - as many entries as labels, times eight
    def forbidden(self, *, opens: bool, has_words: bool, closed: str | None, ends: bool) -> Booleans:
        """Return which tokens are not allowed if only these kinds are; `closed` is the label that may close."""
        allowed = [*(self.opening if opens else ()), *(self.leaves if has_words else ())]
        allowed += [self.closing[closed]] if closed is not None else []
        forbidden_V = np.ones(self.size, dtype=np.bool_)
        forbidden_V[[*allowed, *([self.end] if ends else [])]] = False
        return forbidden_V


class PartialTree(NamedTuple):
    """A hypothesis: its open brackets, the words that it used, whether the innermost bracket is empty."""

    open_labels: tuple[str, ...] = ()
    used: int = 0
    is_empty: bool = False

    def extended(self, token: int, symbols: TreeSymbols) -> "PartialTree":
        """Return the tree with one more symbol; the search only adds symbols that are allowed."""
        if token in symbols.opening:
            return PartialTree((*self.open_labels, symbols.opening[token]), self.used, is_empty=True)
        if token in symbols.leaves:
            return PartialTree(self.open_labels, self.used + 1)
        return PartialTree(self.open_labels[:-1], self.used)

    def forbidden(self, symbols: TreeSymbols, *, words: int, room: int) -> Booleans:
        """Return which tokens may not come next, if `room` tokens fit, the next and the end token included."""
        left, depth = words - self.used, len(self.open_labels)
        return symbols.forbidden(
            opens=left > 0 and depth < DEEPEST - 1 and room >= left + depth + 3,
            has_words=left > 0,
            closed=self.open_labels[-1] if depth and not self.is_empty else None,
            ends=left <= 0 and not depth,
        )


@dataclass
class TreeState:
    """The model's state, and the trees of all beams."""

    inner: Any
    words: list[int]
    limits: list[int]
    trees: list[list[PartialTree]]
    position: int = 0


class TreeStepper:
    """A model whose next symbols are limited to those that can continue a tree."""

    def __init__(
        self, stepper: Stepwise[State], symbols: TreeSymbols, *, words: Sequence[int], limits: Sequence[int]
    ) -> None:
        """`words` is how many words each sentence has, `limits` how many tokens its output may have."""
        self.stepper: Stepwise[Any] = stepper
        self.symbols, self.words, self.limits = symbols, list(words), list(limits)
        self.tokens, self.source_padding = stepper.tokens, stepper.source_padding

    def longest_target(self, source_length: int) -> int | None:
        """Return the model's bound."""
        return self.stepper.longest_target(source_length)

    def start(self, source_BS: Ids) -> TreeState:
        """Start the model with an empty tree for each sentence."""
        trees = [[PartialTree()] for _ in self.words]
        return TreeState(self.stepper.start(source_BS), self.words, self.limits, trees)

    def step(self, state: TreeState, tokens_BW: Ids) -> LogProbabilities:
        """Return log p of each token, -inf if it cannot continue the tree."""
        log_probabilities_BWV = self.stepper.step(state.inner, tokens_BW)
        if state.position:
            state.trees = [
                [tree.extended(token, self.symbols) for tree, token in zip(trees, tokens, strict=True)]
                for trees, tokens in zip(state.trees, tokens_BW.tolist(), strict=True)
            ]
        for row, (trees, words, limit) in enumerate(zip(state.trees, state.words, state.limits, strict=True)):
            for beam, tree in enumerate(trees):
                forbidden_V = tree.forbidden(self.symbols, words=words, room=limit - state.position)
                log_probabilities_BWV[row, beam, forbidden_V] = -math.inf
        state.position += 1
        return log_probabilities_BWV

    def select(self, state: TreeState, sentences_B: Ids, beams_BW: Ids) -> TreeState:
        """Select in the model and among the trees."""
        rows = sentences_B.tolist()
        return TreeState(
            self.stepper.select(state.inner, sentences_B, beams_BW),
            [state.words[row] for row in rows],
            [state.limits[row] for row in rows],
            [[state.trees[row][beam] for beam in beams] for row, beams in zip(rows, beams_BW.tolist(), strict=True)],
            state.position,
        )


def tree_search(
    stepper: Stepwise[State],
    source_BS: Ids,
    config: DecodingConfig,
    *,
    symbols: TreeSymbols,
    words: Sequence[int],
) -> list[list[Hypothesis]]:
    """Return the best trees over the words of each sentence of a padded batch, as symbols; `words` counts the words."""
    limits = OutputRequest.of(stepper, source_BS, config, prefixes=None).limit_B.tolist()
    for count, limit in zip(words, limits, strict=True):
        if count + 1 > limit:
            raise DataError(f"A tree of {count} words needs more than the {limit} symbols that an output may have.")
    return beam_search(TreeStepper(stepper, symbols, words=words, limits=limits), source_BS, config)
