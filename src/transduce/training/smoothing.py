"""Label smoothing: the target distribution of section 5.4 of "Attention Is All You Need".

q gives the true token a probability of about 1 - ε_ls, with ε_ls = 0.1, and spreads the rest over the vocabulary:

    szegedy   q(true) = 1 - ε + ε/V    q(other) = ε/V          the work that 5.4 cites; our default
    authors   q(true) = 1 - ε          q(other) = ε/(V - 1)    the authors' code

The default follows the paper. `authors` at ε equals `szegedy` at ε·V/(V - 1), so at V = 37,000 the choice changes only
the sixth digit of ε.
"""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Smoothing:
    """The target distribution q: the probability of the true token and of each other token."""

    true: float
    other: float

    @classmethod
    def of(cls, epsilon: float, *, vocabulary_size: int, convention: Literal["szegedy", "authors"]) -> "Smoothing":
        """Return the distribution smoothed by `epsilon` under one of the two conventions."""
        if convention == "szegedy":
            return cls(true=1.0 - epsilon + epsilon / vocabulary_size, other=epsilon / vocabulary_size)
        return cls(true=1.0 - epsilon, other=epsilon / (vocabulary_size - 1))

    def entropy(self, vocabulary_size: int) -> float:
        """Return the entropy of q, which is the smallest possible loss of a token."""
        others = (vocabulary_size - 1) * self.other * math.log(self.other) if self.other else 0.0
        return -self.true * math.log(self.true) - others
