"""One output of the decoder: its tokens and how good it is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """An output that search or sampling found for one source sentence.

    `log_probability` is log P(Y | X) under the model alone, forced tokens included; `score` is that divided by the
    length penalty. `tokens` end in the end token exactly if `is_finished`; if not, the limit cut them off.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    is_finished: bool
