"""Perplexity: the number of equally likely choices that would leave the model as uncertain as it is, on average.

    per piece   exp(−Σ log p / pieces)       Σ over every token of every target sentence and its end token
    per byte    exp(−Σ log p / bytes)        bytes of the same text in UTF-8, with one for the end of each line

The paper's perplexities (Table 3) are per piece and comparable only between models with the same vocabulary.
Perplexities per byte are comparable between all models. Both count the end of a sentence: as a token, or as a byte.
"""

import math
from collections.abc import Iterable

from pydantic import BaseModel

from transduce.errors import DataError


class TextLikelihood(BaseModel, frozen=True, extra="forbid"):
    """The log-probability of a text under a model, and its size in pieces and in bytes."""

    log_probability: float
    """Σ log p, natural logarithm."""
    pieces: int
    """Tokens predicted, end tokens included."""
    bytes: int
    """Bytes of the text in UTF-8, the end of each line included."""

    @property
    def perplexity_per_piece(self) -> float:
        """Exponential of the mean negative log-probability of a piece."""
        return _exp(-self.log_probability / self.pieces)

    @property
    def perplexity_per_byte(self) -> float:
        """Exponential of the mean negative log-probability of a byte."""
        return _exp(-self.log_probability / self.bytes)


def likelihood_of(text: str, token_log_probabilities: Iterable[float]) -> TextLikelihood:
    """Return the likelihood of one sentence from the log-probabilities of its tokens and end token."""
    values = list(token_log_probabilities)
    return TextLikelihood(
        log_probability=math.fsum(values),
        pieces=len(values),
        bytes=len(text.encode("utf-8", errors="replace")) + 1,
    )


def total_likelihood(likelihoods: Iterable[TextLikelihood]) -> TextLikelihood:
    """Return the likelihood of all sentences together."""
    parts = list(likelihoods)
    if not parts:
        raise DataError("Perplexity needs at least one sentence: no sentence was given.")
    return TextLikelihood(
        log_probability=math.fsum(part.log_probability for part in parts),
        pieces=sum(part.pieces for part in parts),
        bytes=sum(part.bytes for part in parts),
    )


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:  # the model gives the text almost no probability
        return math.inf
