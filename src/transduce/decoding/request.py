"""The requirements on the outputs of a batch, searched or drawn: their number, their lengths, their prefixes.

- The limit of a sentence is the length of its source without padding plus `extra_length` (6.1), so it does not depend
  on the rest of the batch; the authors' code took the padded length. Both lengths count the end token.
- The padding, unknown and start tokens are never generated; the end token is not generated before `minimum_length`.
- A forced prefix is kept as it is: only a prefix may put the unknown token into an output, or make an output longer
  than its limit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from transduce.data.padding import pad_ids
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.length_penalty import length_penalty
from transduce.networks.stepwise import Ids, LogProbabilities, Stepwise
from transduce.special_tokens import SpecialTokens

NOT_FORCED = -1


@dataclass(frozen=True)
class OutputRequest:
    """The requirements on the outputs of B sentences."""

    tokens: SpecialTokens
    """The end token, and the tokens that an output may not contain."""
    alternatives: int
    """The number of outputs for each sentence."""
    length_penalty: float
    """The α by which they are scored."""
    stops_when_full: bool
    """Whether a sentence is done once `beam` hypotheses have finished."""
    minimum_length: int
    """The fewest tokens of every output, its end token included."""
    limit_B: Ids
    """The most tokens of each sentence's outputs, the end token included."""
    prefix_BP: Ids
    """The tokens with which each sentence's outputs begin, then NOT_FORCED."""

    @classmethod
    def of(
        cls,
        stepper: Stepwise[Any],
        source_BS: Ids,
        config: DecodingConfig,
        *,
        prefixes: Sequence[Sequence[int]] | None,
    ) -> Self:
        """Return the requirements of `config` on a padded batch; a sentence without a prefix has an empty one."""
        tokens = stepper.tokens
        prefixes = [()] * len(source_BS) if prefixes is None else prefixes
        assert len(prefixes) == len(source_BS), "give one prefix for each sentence, or none at all"
        assert not any(tokens.end in prefix for prefix in prefixes), "a prefix does not end"
        lengths = (source_BS != stepper.source_padding).sum(axis=1).tolist()
        limits = [
            _limit(length, len(prefix), config, longest=stepper.longest_target(length))
            for length, prefix in zip(lengths, prefixes, strict=True)
        ]
        return cls(
            tokens=tokens,
            alternatives=config.alternatives,
            length_penalty=config.length_penalty,
            stops_when_full=config.stop == "full",
            minimum_length=config.minimum_length,
            limit_B=np.array(limits, dtype=np.int64),
            prefix_BP=pad_ids(prefixes, padding=NOT_FORCED),
        )

    def forces(self, position: int) -> bool:
        """Return whether a prefix may reach `position`, which counts from 0."""
        return position < int(self.prefix_BP.shape[1])

    def forbidden(self, position: int) -> tuple[int, ...]:
        """Return the tokens that are not allowed at `position` unless a prefix forces them."""
        too_early = (self.tokens.end,) if position + 1 < self.minimum_length else ()
        return (*self.tokens.never_generated, *too_early)

    def forbid(self, log_probabilities_BWV: LogProbabilities, *, position: int) -> None:
        """Set the log-probability of every token that is not allowed at `position` to -inf."""
        if not self.forces(position):
            self._forbid_tokens(log_probabilities_BWV, position)
            return
        forced_B = self.prefix_BP[:, position]
        rows = np.flatnonzero(forced_B != NOT_FORCED)
        forced_FW = log_probabilities_BWV[rows, :, forced_B[rows]]
        self._forbid_tokens(log_probabilities_BWV, position)
        log_probabilities_BWV[rows] = -math.inf
        log_probabilities_BWV[rows, :, forced_B[rows]] = forced_FW

    def _forbid_tokens(self, log_probabilities_BWV: LogProbabilities, position: int) -> None:
        for token in self.forbidden(position):
            log_probabilities_BWV[..., token] = -math.inf

    def hypothesis(self, tokens: Sequence[int], log_probability: float) -> Hypothesis:
        """Return the hypothesis made of `tokens` up to the first end token, or of all if there is none."""
        is_finished = self.tokens.end in tokens
        length = tokens.index(self.tokens.end) + 1 if is_finished else len(tokens)
        score = log_probability / length_penalty(length, alpha=self.length_penalty)
        return Hypothesis(tuple(tokens[:length]), log_probability, score, is_finished)

    def select(self, sentences: Ids) -> Self:
        """Return the requirements on the given sentences, in that order."""
        return replace(self, limit_B=self.limit_B[sentences], prefix_BP=self.prefix_BP[sentences])


def _limit(source_length: int, prefix_length: int, config: DecodingConfig, *, longest: int | None) -> int:
    """Return the most tokens of a sentence's outputs."""
    limit = max(source_length + config.extra_length, config.minimum_length)
    if config.maximum_length is not None:
        limit = min(limit, config.maximum_length)
    limit = max(limit, prefix_length + 1)  # a prefix needs its own room and a place for the end token
    return limit if longest is None else min(limit, longest)
