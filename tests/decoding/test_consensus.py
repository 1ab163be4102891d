"""Agreement between outputs, against counting by hand and by Counter; and the search that goes by it."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from transduce.data.batch import pad_rows
from transduce.decoding.config import DecodingConfig
from transduce.decoding.consensus import agreements, by_agreement
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.search import search
from transduce.text.tokenizer import EOS

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

A, B, C, D = 4, 5, 6, 7
SOURCES = [[4, 3], [5, 5, 5, 3], [6, 6, 3]]


def agreement(ours: Sequence[int], theirs: Sequence[int]) -> float:
    """Return F of two outputs as the module's opening defines it, run by run."""
    total = 0.0
    for n in (1, 2, 3, 4):
        runs = [Counter(tuple(own[k : k + n]) for k in range(len(own) - n + 1)) for own in (ours, theirs)]
        if count := runs[0].total() + runs[1].total():
            total += 2 * (runs[0] & runs[1]).total() / count
    return total / 4


def hypothesis(*tokens: int, score: float) -> Hypothesis:
    return Hypothesis((*tokens, EOS), log_probability=3 * score, score=score, is_finished=True)


def test_two_outputs_by_hand() -> None:
    # a b c . and a b d . share a, b and . of 4 + 4 tokens and ab of 3 + 3 pairs; nothing longer.
    found = agreements([(A, B, C, EOS), (A, B, D, EOS)])
    assert found[0, 1] == pytest.approx((6 / 8 + 2 / 6) / 4)
    assert found[0, 0] == pytest.approx(1.0)


def test_a_run_that_repeats_is_shared_as_often_as_in_the_one_that_has_it_less() -> None:
    found = agreements([(A, A, A, EOS), (A, A, EOS)])
    assert found[0, 1] == pytest.approx((2 * 3 / 7 + 2 * 2 / 5 + 2 * 1 / 3 + 0) / 4)


def test_it_counts_as_counting_one_by_one_does() -> None:
    dice = random.Random(1)
    outputs = [[dice.randrange(4, 7) for _ in range(dice.randrange(12))] for _ in range(30)]
    expected = [[agreement(ours, theirs) for theirs in outputs] for ours in outputs]
    np.testing.assert_allclose(agreements(outputs), expected, atol=1e-12)


def test_a_stray_output_loses_to_one_that_others_resemble() -> None:
    stray, first, second = (
        hypothesis(D, D, D, D, score=-1.0),
        hypothesis(A, B, C, A, score=-1.2),
        hypothesis(A, B, C, B, score=-1.3),
    )
    assert by_agreement([stray, first, second]) == [first, second, stray]


def test_an_output_far_more_probable_than_all_others_stays_first() -> None:
    stray, others = hypothesis(D, D, D, score=-1.0), [hypothesis(A, B, n, score=-9.0) for n in (C, D)]
    assert by_agreement([stray, *others])[0] == stray


@pytest.mark.parametrize("stop", ["certain", "full"])
def test_search_puts_first_what_agrees_most_with_all_that_the_beam_ends_with(
    table_model: type["TableModel"], stop: str
) -> None:
    model, changed = table_model.random(3, symbols=5, sources=3), 0
    plain = DecodingConfig.model_validate({"beam": 12, "alternatives": 12, "extra_length": 5, "stop": stop})
    for own, found in zip(
        search(model, pad_rows(SOURCES), plain),
        search(model, pad_rows(SOURCES), plain.model_copy(update={"consensus": True, "alternatives": 3})),
        strict=True,
    ):
        expected = sorted(
            own, key=lambda h: -sum(np.exp(other.score) * agreement(h.tokens, other.tokens) for other in own)
        )
        assert found == expected[:3], "the same outputs with the model's own scores, in another order"
        changed += found[0] != own[0]
    assert changed, "else nothing is shown"


def test_a_beam_of_one_and_samples_are_as_without(table_model: type["TableModel"]) -> None:
    model = table_model.random(3, symbols=5, sources=3)
    for options in ({"beam": 1}, {"sample": True, "alternatives": 4}):
        without, with_consensus = (
            DecodingConfig.model_validate({"extra_length": 5, "consensus": consensus, **options})
            for consensus in (False, True)
        )
        expected = search(model, pad_rows(SOURCES), without)
        assert search(model, pad_rows(SOURCES), with_consensus) == expected
