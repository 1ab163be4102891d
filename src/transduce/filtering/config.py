"""Which pairs `transduce filter` drops: a limit for each score; None switches the score's limit off."""

from typing import Literal

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveFloat, PositiveInt


class FilterConfig(BaseModel, frozen=True, extra="forbid"):
    """The limits. A pair is dropped if a score is above its limit. The defaults suit text of any kind."""

    duplicates: Literal["exact", "near"] | None = "near"
    """`near` takes pairs as equal that differ in case, spaces, punctuation or digits only."""
    copied: NonNegativeFloat | None = Field(default=0.8, le=1)
    """The share of the target's words that are words of the source, where the target has three or more."""
    numbers: NonNegativeFloat | None = 0
    """How many numbers one side has and the other has written otherwise, or lacks."""
    placeholders: NonNegativeFloat | None = 0
    """How many placeholders, URLs and tags only one side has."""
    length: PositiveFloat | None = 3.2
    """The distance of log(target length / source length) from the corpus' median, in robust deviations."""
    likelihood: PositiveFloat | None = 6.5
    """How far the cross-entropy under the model is above the corpus' median, in robust deviations."""
    ending: PositiveFloat | None = 0.5
    """-log p of the target's end under the model: high if the target stops too early."""
    language: float | None = Field(default=None, ge=0, le=1)
    """1 - the probability that a side is in its language; a detector errs on short text, so there is no default."""

    sample: PositiveInt = 4_000
    """How many pairs, drawn at random, tell what is usual in the corpus."""
    seed: int = 1
