"""How to look for the best output, section 6.1 of "Attention Is All You Need".

The defaults are the paper's: beam 4, length penalty 0.6, at most input length + 50 tokens. Every length counts the
end token, in the source as in the output: a source of n pieces and its end gives at most n + 50 pieces and an end.
"""

from typing import Annotated, Literal, Self, TypedDict

from pydantic import BaseModel, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator


class DecodingConfig(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """How outputs are searched for, or drawn. The defaults are those of section 6.1."""

    beam: PositiveInt = 4
    """Hypotheses kept alive for each sentence; 1 is greedy search. (6.1)"""
    length_penalty: NonNegativeFloat = 0.6
    """α of ((5 + |Y|) / 6)^α, by which a log-probability is divided; 0 compares log-probabilities as they are. (6.1)
    """
    extra_length: NonNegativeInt = 50
    """How much longer than its own source an output may become, both with their end tokens. [tokens] (6.1)"""
    minimum_length: NonNegativeInt = 0
    """Shortest output, its end token included: before that place no hypothesis may end. Raises a lower
    limit of a short source. [tokens]
    """
    maximum_length: PositiveInt | None = None
    """Longest output, its end token included, whatever the source's length; no such bound unless given. [tokens]"""
    stop: Literal["certain", "full"] = "certain"
    """When a sentence is done: `certain`, once no hypothesis alive can overtake the best finished ones, is the
    authors' code's; `full`, once `beam` hypotheses have finished from among the `beam` best candidates of their
    steps, is what other toolkits do: fewer steps. (6.1)
    """
    shortlist: bool = False
    """Give each sentence a vocabulary of its own, the few hundred tokens that its words can become, which is faster
    where the vocabulary is large. Needs a model trained with `training.shortlist`. Departure.
    """
    consensus: bool = False
    """Put first, of the hypotheses that the search ends with, not the most probable but the one that the others agree
    with most: minimum Bayes risk. A wider beam gives it more to choose from; with `sample` it plays no part. What
    agrees is text, so this is the translator's: `search` leaves it out. Departure.
    """
    alternatives: PositiveInt = 1
    """Hypotheses returned for each sentence, the best one included: at most `beam`, or any number of samples."""
    sample: bool = False
    """Draw each token from the model's distribution instead of searching; `beam` then plays no part."""
    temperature: PositiveFloat = 1.0
    """Divides the log-probabilities before a token is drawn; below 1 the likely become likelier. Needs `sample`."""
    top_k: PositiveInt | None = None
    """Draw among this many most probable tokens only; among all unless given. Needs `sample`. [tokens]"""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw among the fewest most probable tokens that together hold this share of the probability (what `top_k`
    left of it) only. Needs `sample`.
    """
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Key of the random draws: the same seed, sentence number and source give the same sample in any batch."""

    @model_validator(mode="after")
    def alternatives_fit_the_beam(self) -> Self:
        """Refuse more alternatives than a search keeps."""
        if not self.sample and self.alternatives > self.beam:
            raise ValueError(
                f"{self.alternatives} alternatives were asked of a beam of {self.beam}, which keeps no more than "
                f"{self.beam}. Set beam to {self.alternatives}, or ask for {self.beam} alternatives."
            )
        return self

    @model_validator(mode="after")
    def lengths_leave_room(self) -> Self:
        """Refuse a minimum length above the maximum."""
        if self.maximum_length is not None and self.minimum_length > self.maximum_length:
            raise ValueError(
                f"minimum_length = {self.minimum_length} is above maximum_length = {self.maximum_length}. "
                "Lower the one or raise the other."
            )
        return self

    @model_validator(mode="after")
    def drawing_is_asked_for(self) -> Self:
        """Refuse settings of sampling that a search would silently ignore."""
        if not self.sample and (self.temperature != 1.0 or self.top_k is not None or self.top_p != 1.0):
            raise ValueError(
                "temperature, top_k and top_p shape random draws, but beam search draws nothing. "
                "Set sample = true, or leave them out."
            )
        return self


class DecodingOptions(TypedDict, total=False):
    """The settings of `DecodingConfig` as keyword arguments: those left out keep the model's own values."""

    beam: int
    length_penalty: float
    extra_length: int
    minimum_length: int
    maximum_length: int | None
    stop: Literal["certain", "full"]
    shortlist: bool
    consensus: bool
    alternatives: int
    sample: bool
    temperature: float
    top_k: int | None
    top_p: float
    seed: int
