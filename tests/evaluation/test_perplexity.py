"""Perplexities worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import DataError
from transduce.evaluation.perplexity import TextLikelihood, likelihood_of, total_likelihood


def test_one_sentence_by_hand() -> None:
    """Pieces "Gu", "ten" and the end with probabilities 1/2, 1/4, 1/8: 2^-6 over 3 pieces, and over 5 letters + end."""
    found = likelihood_of("Guten", [math.log(1 / 2), math.log(1 / 4), math.log(1 / 8)])
    assert found.pieces == 3
    assert found.bytes == 6
    assert found.log_probability == pytest.approx(-6 * math.log(2))
    assert found.perplexity_per_piece == pytest.approx(4)
    assert found.perplexity_per_byte == pytest.approx(2)


def test_bytes_are_those_of_utf_8() -> None:
    assert likelihood_of("Größe", [-1.0]).bytes == 8
    assert likelihood_of("", [-1.0]).bytes == 1


def test_sentences_add_up_before_the_mean_is_taken() -> None:
    """1/2 over 1 piece and 1/2^9 over 4: together 2^-10 over 5, which is 4, not the mean of 2 and 4.76."""
    total = total_likelihood(
        [
            TextLikelihood(log_probability=-math.log(2), pieces=1, bytes=2),
            TextLikelihood(log_probability=-9 * math.log(2), pieces=4, bytes=3),
        ]
    )
    assert (total.pieces, total.bytes) == (5, 5)
    assert total.perplexity_per_piece == pytest.approx(4)


@given(st.integers(2, 50_000), st.integers(1, 40))
def test_a_uniform_model_is_as_perplexed_as_its_vocabulary_is_large(vocabulary: int, pieces: int) -> None:
    found = likelihood_of("text", [-math.log(vocabulary)] * pieces)
    assert found.perplexity_per_piece == pytest.approx(vocabulary)


def test_an_impossible_text_has_infinite_perplexity() -> None:
    assert likelihood_of("x", [-math.inf]).perplexity_per_piece == math.inf
    assert likelihood_of("x", [-1e6]).perplexity_per_byte == math.inf


def test_nothing_has_no_perplexity() -> None:
    with pytest.raises(DataError, match="no sentence was given"):
        total_likelihood([])
