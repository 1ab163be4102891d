"""Settings of the search for outputs, section 6.1 of "Attention Is All You Need".

The defaults are the paper's: beam 4, length penalty 0.6, at most input length + 50 tokens. Every length counts the
end token, in the source as in the output: a source of n pieces and its end gives at most n + 50 pieces and an end.
"""

from typing import Annotated, Literal, Self, TypedDict

from pydantic import BaseModel, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator


class DecodingConfig(BaseModel, frozen=True, extra="forbid"):
    """Settings of beam search and sampling. The defaults are those of section 6.1."""

    beam: PositiveInt = 4
    """Hypotheses kept alive for each sentence; 1 is greedy search. (6.1)"""
    length_penalty: NonNegativeFloat = 0.6
    """α of ((5 + |Y|) / 6)^α, the divisor of a log-probability; 0 compares log-probabilities as they are. (6.1)
    """
    extra_length: NonNegativeInt = 50
    """How much longer than its own source an output may become, both with their end tokens. [tokens] (6.1)"""
    minimum_length: NonNegativeInt = 0
    """Shortest output, its end token included: no hypothesis may end earlier. If the source's own limit on the length
    is lower, that limit is raised to this. [tokens]
    """
    maximum_length: PositiveInt | None = None
    """Longest output, its end token included, for sources of any length; no such bound unless given. [tokens]"""
    stop: Literal["certain", "full"] = "certain"
    """When a sentence is done: with `certain`, as in the authors' code, once no hypothesis alive can overtake the best
    finished ones; with `full`, as in other toolkits and in fewer steps, once `beam` hypotheses have finished, each
    among the `beam` best candidates of its step. (6.1)
    """
    shortlist: bool = False
    """Give each sentence a vocabulary of its own, the few hundred tokens that its words can become, which is faster
    where the vocabulary is large. Needs a model trained with `training.shortlist`. Departure.
    """
    consensus: bool = False
    """Rank the final hypotheses of beam search by how similar each is to the others, not by probability: minimum Bayes
    risk. A wider beam gives more hypotheses to choose from; no effect with `sample`. It compares texts, so the
    translator does it and `decoding.search` does not. Departure.
    """
    alternatives: PositiveInt = 1
    """Hypotheses returned for each sentence, the best one included: at most `beam`, or any number of samples. The
    translator returns no text twice, so there may be fewer; samples may repeat.
    """
    keep_placeholders: Literal["enforce", "report", "off"] = "enforce"
    """What happens if an output lacks a placeholder, URL, tag or number of its source: with `enforce` the sentence is
    searched again for an output that has them all (not with `sample`), and what is still missing is reported; with
    `report` it is only reported; with `off` it is not even looked for. The translator does this, and `decoding.search`
    does not. Departure.
    """
    keep_form: bool = True
    """Give an output the final punctuation and the capitals of its source: none after a label without a full stop, all
    capitals for all capitals. The model reads a sentence in capitals, of at least two words, in small letters. The
    translator does this, and `decoding.search` does not. Departure.
    """
    sample: bool = False
    """Draw each token from the model's distribution instead of searching; `beam` then has no effect."""
    temperature: PositiveFloat = 1.0
    """Divides the log-probabilities before a token is drawn; below 1 the likely become likelier. Needs `sample`."""
    top_k: PositiveInt | None = None
    """Draw only among this many most probable tokens; among all unless given. Needs `sample`. [tokens]"""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Draw only among the most probable tokens, as few as hold this share of the probability that `top_k` left. Needs
    `sample`.
    """
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Key of the random draws: the same seed, sentence number and source give the same sample in any batch."""

    @model_validator(mode="after")
    def alternatives_fit_the_beam(self) -> Self:
        """Refuse more alternatives than a search keeps."""
        if not self.sample and self.alternatives > self.beam:
            raise ValueError(
                f"alternatives = {self.alternatives} is above beam = {self.beam}, and a search keeps at most that many "
                f"hypotheses. Set beam to {self.alternatives}, or alternatives to {self.beam}."
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
    keep_placeholders: Literal["enforce", "report", "off"]
    keep_form: bool
    sample: bool
    temperature: float
    top_k: int | None
    top_p: float
    seed: int
