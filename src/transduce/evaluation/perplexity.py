"""Perplexity: how many equally likely choices the model was left with, on average.

    per piece   exp(−Σ log p / pieces)       Σ over every piece of every target sentence and its end mark
    per byte    exp(−Σ log p / bytes)        bytes of the same text in UTF-8, one more for each line's end

The paper's perplexities (Table 3) are per piece and can only be compared between models with one vocabulary. Per byte,
models with different vocabularies can be compared too. The end mark says what a line's end says, so both count it.
"""

import math
from collections.abc import Iterable

from pydantic import BaseModel

from transduce.errors import DataError


class TextLikelihood(BaseModel, frozen=True, extra="forbid"):
    """How probable a model finds some text."""

    log_probability: float
    """Σ log p, natural logarithm."""
    pieces: int
    """Pieces predicted, end marks included."""
    bytes: int
    """Bytes of the text in UTF-8, each line's end included."""

    @property
    def perplexity_per_piece(self) -> float:
        """Exp of the mean negative log-probability of a piece."""
        return _exp(-self.log_probability / self.pieces)

    @property
    def perplexity_per_byte(self) -> float:
        """Exp of the mean negative log-probability of a byte."""
        return _exp(-self.log_probability / self.bytes)


def likelihood_of(text: str, token_log_probabilities: Iterable[float]) -> TextLikelihood:
    """Return the likelihood of one sentence from the log-probabilities of its pieces and end mark."""
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
        raise DataError("There is no perplexity of nothing: no sentence was given.")
    return TextLikelihood(
        log_probability=math.fsum(part.log_probability for part in parts),
        pieces=sum(part.pieces for part in parts),
        bytes=sum(part.bytes for part in parts),
    )


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:  # a model that finds the text all but impossible
        return math.inf
