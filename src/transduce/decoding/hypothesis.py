"""One output of the decoder: its tokens and how good it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from transduce.decoding.length_penalty import length_penalty
from transduce.text.tokenizer import EOS


@dataclass(frozen=True)
class Hypothesis:
    """An output that search or sampling found for one source sentence.

    `log_probability` is log P(Y | X) under the model alone, forced tokens included; `score` is what that is worth
    after the length penalty. `tokens` end in the end token exactly if `is_finished`; if not, the limit cut them off.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    is_finished: bool

    @classmethod
    def of(cls, tokens: Sequence[int], *, log_probability: float, alpha: float) -> Self:
        """Return the hypothesis that `tokens` hold up to their first end token, if they have one."""
        is_finished = EOS in tokens
        length = tokens.index(EOS) + 1 if is_finished else len(tokens)
        score = log_probability / length_penalty(length, alpha=alpha)
        return cls(tuple(tokens[:length]), log_probability, score, is_finished)
