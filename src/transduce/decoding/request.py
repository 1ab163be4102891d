"""What is asked of a batch's outputs, whether they are searched for or drawn: how many, how long, how they begin.

- A sentence's own limit is its source's length without padding plus `extra_length` (6.1), so a longer neighbour in
  the batch gives it no more room; the authors' code took the padded length. Both lengths count the end token.
- The padding, unknown and start tokens are never generated, and the end token not before `minimum_length`.
- A forced prefix is kept as it is, whatever else is asked: only there may the unknown token stand in an output, and
  only for its sake may an output outgrow its limit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from transduce.decoding.config import DecodingConfig
from transduce.text.tokenizer import EOS, PAD


@dataclass(frozen=True)
class Request:
    """What is asked of the outputs of B sentences."""

    alternatives: int
    """How many outputs of each sentence."""
    length_penalty: float
    """The α by which they are scored."""
    stops_when_full: bool
    """Whether a sentence is done once as many hypotheses have finished as are alive."""
    minimum_length: int
    """The fewest tokens of every output, its end token included."""
    limit_B: Tensor
    """The most tokens of each sentence's outputs, the end token included."""
    prefix_BP: Tensor
    """The tokens with which each sentence's outputs begin, then padding."""

    @classmethod
    def of(
        cls,
        source_BS: Tensor,
        config: DecodingConfig,
        *,
        prefixes: Sequence[Sequence[int]] | None,
        longest_target: int | None,
    ) -> Self:
        """Return what `config` asks of a padded batch; `prefixes` holds a sequence, maybe empty, for each sentence."""
        prefix_BP = _padded([()] * source_BS.size(0) if prefixes is None else prefixes).to(source_BS.device)
        assert prefix_BP.size(0) == source_BS.size(0), "give one prefix for each sentence, or none at all"
        limit_B = (source_BS != PAD).sum(dim=1) + config.extra_length
        limit_B = limit_B.clamp(min=config.minimum_length, max=config.maximum_length)
        # A prefix needs its own room and a place for the end token.
        limit_B = limit_B.maximum((prefix_BP != PAD).sum(dim=1) + 1)
        limit_B = limit_B.clamp(min=1, max=longest_target)
        return cls(
            alternatives=config.alternatives,
            length_penalty=config.length_penalty,
            stops_when_full=config.stop == "full",
            minimum_length=config.minimum_length,
            limit_B=limit_B,
            prefix_BP=prefix_BP,
        )

    def forbid(self, log_probabilities_BWV: Tensor, *, position: int) -> None:
        """Write -inf over every token that may not stand at `position`, which counts from 0."""
        if position >= self.prefix_BP.size(1):
            self._forbid_freely(log_probabilities_BWV, position=position)
            return
        forced_B = self.prefix_BP[:, position]
        rows = (forced_B != PAD).nonzero()[:, 0]
        forced_FW = log_probabilities_BWV[rows, :, forced_B[rows]]
        self._forbid_freely(log_probabilities_BWV, position=position)
        log_probabilities_BWV[rows] = -math.inf
        log_probabilities_BWV[rows, :, forced_B[rows]] = forced_FW

    def _forbid_freely(self, log_probabilities_BWV: Tensor, *, position: int) -> None:
        log_probabilities_BWV[..., :EOS] = -math.inf  # padding, unknown and start: the ids before the end token's
        if position + 1 < self.minimum_length:
            log_probabilities_BWV[..., EOS] = -math.inf

    def select(self, sentences: Tensor) -> Self:
        """Return what is asked of the named sentences, in that order."""
        return replace(self, limit_B=self.limit_B[sentences], prefix_BP=self.prefix_BP[sentences])


def _padded(prefixes: Sequence[Sequence[int]]) -> Tensor:
    assert not any(token in (PAD, EOS) for prefix in prefixes for token in prefix), "a prefix neither pads nor ends"
    longest = max(map(len, prefixes), default=0)
    rows = [[*prefix, *[PAD] * (longest - len(prefix))] for prefix in prefixes]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(prefixes), longest)
