"""Draws follow the model's distribution, and depend on seed, sentence and position alone."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from transduce.decoding.config import DecodingConfig
from transduce.decoding.sampling import TokenSampler, sample, uniform_numbers
from transduce.errors import ModelError
from transduce.special_tokens import OWN_SPECIAL_TOKENS

EOS = OWN_SPECIAL_TOKENS.end

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

PROBABILITIES = [0.0, 0.1, 0.4, 0.05, 0.25, 0.2, 0.0]


def drawn(sampler: TokenSampler, uniform: list[float]) -> list[int]:
    with np.errstate(divide="ignore"):
        log_probabilities_RV = np.log(np.array([PROBABILITIES] * len(uniform)))
    tokens: list[int] = sampler.draw(log_probabilities_RV, np.array(uniform)).tolist()
    return tokens


def is_drawn_from(counts: dict[object, int], probabilities: dict[object, float]) -> bool:
    """Return whether Pearson's chi-square is what such counts give all but once in 10,000 times.

    The quantile is Wilson and Hilferty's; outcomes expected fewer than five times are taken together.
    """
    total = sum(counts.values())
    assert set(counts) <= set(probabilities)
    common = {outcome for outcome, probability in probabilities.items() if probability * total >= 5}
    expected = [probabilities[outcome] * total for outcome in common]
    observed = [counts.get(outcome, 0) for outcome in common]
    if total - sum(expected) > 1e-6 * total:
        expected.append(total - sum(expected))
        observed.append(total - sum(observed))
    statistic = sum((seen - due) ** 2 / due for seen, due in zip(observed, expected, strict=True))
    freedom = len(expected) - 1
    quantile = freedom * (1 - 2 / (9 * freedom) + 3.719 * math.sqrt(2 / (9 * freedom))) ** 3
    return statistic < quantile


def test_a_number_decides_the_token_at_which_the_cumulative_probability_exceeds_it() -> None:
    last = 1 - 2**-53
    assert drawn(TokenSampler(), [0.0, 0.09, 0.11, 0.49, 0.51, 0.56, 0.79, 0.81, last]) == [1, 1, 2, 2, 3, 4, 4, 5, 5]


def test_top_k_keeps_the_most_probable_and_renormalises_them() -> None:
    # 0.4 and 0.25 of 0.65, in this order.
    assert drawn(TokenSampler(top_k=2), [0.0, 0.61, 0.62, 0.99]) == [2, 2, 4, 4]
    assert drawn(TokenSampler(top_k=1), [0.0, 0.5, 0.99]) == [2, 2, 2]


def test_top_p_keeps_the_fewest_that_hold_the_share() -> None:
    assert drawn(TokenSampler(top_p=0.4), [0.0, 0.99]) == [2, 2]
    assert drawn(TokenSampler(top_p=0.41), [0.0, 0.61, 0.62, 0.99]) == [2, 2, 4, 4]
    # Of the three that top_k leaves, 0.4 + 0.25 of 0.85 hold a share of 0.76.
    assert drawn(TokenSampler(top_k=3, top_p=0.76), [0.61, 0.99]) == [2, 4]
    assert drawn(TokenSampler(top_k=3, top_p=0.77), [0.61, 0.99]) == [4, 5]


def test_top_p_looks_as_far_as_it_must() -> None:
    # Of 1,000 equally probable tokens, a share of 0.7 is the first 700: a lower token goes first among equals.
    log_probabilities_RV = np.log(np.full((3, 1000), 0.001))
    uniform_R = np.array([0.0, 0.5, 1 - 2**-53])
    assert TokenSampler(top_p=0.6995).draw(log_probabilities_RV, uniform_R).tolist() == [0, 350, 699]


@pytest.mark.parametrize(
    ("sampler", "weights"),
    [
        (TokenSampler(), PROBABILITIES),
        (TokenSampler(temperature=0.5), [p**2 for p in PROBABILITIES]),
        (TokenSampler(temperature=2.0), [p**0.5 for p in PROBABILITIES]),
        (TokenSampler(top_k=3), [0, 0, 0.4, 0, 0.25, 0.2, 0]),
        (TokenSampler(temperature=2.0, top_p=0.7), [0, 0, 0.4**0.5, 0, 0.25**0.5, 0.2**0.5, 0]),
    ],
)
def test_tokens_are_drawn_in_proportion(sampler: TokenSampler, weights: list[float]) -> None:
    uniform = uniform_numbers(seed=1, sentence=2, draw=3, count=20_000).tolist()
    probabilities: dict[object, float] = {t: w / sum(weights) for t, w in enumerate(weights) if w}
    assert is_drawn_from(Counter(drawn(sampler, uniform)), probabilities)
    wrong: dict[object, float] = {t: 1 / len(probabilities) for t in probabilities}
    assert not is_drawn_from(Counter(drawn(sampler, uniform)), wrong)  # the test can tell


def test_numbers_are_uniform_and_a_function_of_their_key() -> None:
    numbers = uniform_numbers(seed=7, sentence=5, draw=0, count=10_000)
    assert 0 <= numbers.min() <= numbers.max() < 1
    assert is_drawn_from(Counter((numbers * 100).astype(int).tolist()), dict.fromkeys(range(100), 0.01))
    assert uniform_numbers(seed=7, sentence=5, draw=0, count=9).tolist() == numbers[:9].tolist()
    keys = itertools.product([7, 8, 2**64 - 1], [5, 6], [0, 1])
    streams = {tuple(uniform_numbers(seed=s, sentence=n, draw=w, count=4).tolist()) for s, n, w in keys}
    assert len(set(itertools.chain(*streams))) == 12 * 4


def test_whole_outputs_are_drawn_in_proportion_to_their_probability(table_model: type[TableModel]) -> None:
    model = table_model.random(11, symbols=2)
    samples = 20_000
    config = DecodingConfig(sample=True, alternatives=samples, maximum_length=3, minimum_length=2, seed=4)
    [outputs] = sample(model, np.array([[7, EOS]]), config)
    symbols = (EOS, 4, 5)
    probabilities: dict[object, float] = {}
    for tokens in ((4, EOS), (5, EOS), *itertools.product((4, 5), (4, 5), symbols)):
        steps = []
        for place, token in enumerate(tokens):
            row = model.log_probabilities(7, tokens[:place])
            allowed = symbols if place else symbols[1:]  # the minimum length forbids an end in the first place
            steps.append(math.exp(row[token]) / sum(math.exp(row[other]) for other in allowed))
        probabilities[tokens] = math.prod(steps)
    assert sum(probabilities.values()) == pytest.approx(1)
    assert is_drawn_from(Counter(output.tokens for output in outputs), probabilities)


@settings(max_examples=25)
@given(order=st.permutations(range(7)), cut=st.integers(1, 6))
def test_neither_company_nor_order_changes_a_sample(table_model: type[TableModel], order: list[int], cut: int) -> None:
    model = table_model.random(2, symbols=5, sources=7)
    sources_BS = np.array([[4 + n, *[9] * (n % 3), EOS, *[0] * (2 - n % 3)] for n in range(7)])
    config = DecodingConfig(sample=True, alternatives=2, temperature=1.3, top_p=0.95, extra_length=5, seed=9)
    together = sample(model, sources_BS, config)
    for some in (order[:cut], order[cut:]):
        apart = sample(model, sources_BS[some], config, numbers=some)
        assert apart == [together[number] for number in some]


def test_a_sample_depends_on_seed_and_sentence_number(table_model: type[TableModel]) -> None:
    model = table_model.random(2, symbols=50)
    source_BS = np.array([[7, EOS], [7, EOS]])
    config = DecodingConfig(sample=True, minimum_length=10)
    first, second = sample(model, source_BS, config)
    assert first != second
    assert sample(model, source_BS, config, numbers=[1, 0]) == [second, first]
    assert sample(model, source_BS, config.model_copy(update={"seed": 1}))[0] != first


def test_more_samples_begin_with_the_same_ones(table_model: type[TableModel]) -> None:
    model = table_model.random(2, symbols=20)
    source_BS = np.array([[7, EOS]])
    [few] = sample(model, source_BS, DecodingConfig(sample=True, alternatives=2))
    [many] = sample(model, source_BS, DecodingConfig(sample=True, alternatives=5))
    assert many[:2] == few


def test_a_sample_reports_the_models_own_log_probability_and_a_score(table_model: type[TableModel]) -> None:
    model = table_model.random(2, symbols=6)
    config = DecodingConfig(sample=True, alternatives=8, temperature=0.7, top_k=4)
    [outputs] = sample(model, np.array([[7, 8, EOS]]), config)
    for output in outputs:
        steps = [model.log_probabilities(7, output.tokens[:place])[token] for place, token in enumerate(output.tokens)]
        assert output.log_probability == pytest.approx(sum(steps), abs=1e-10)
        assert output.score == pytest.approx(sum(steps) / ((5 + len(output.tokens)) / 6) ** 0.6, abs=1e-10)


def test_probabilities_that_are_not_numbers_are_refused(table_model: type[TableModel]) -> None:
    model = table_model(np.full((1, 6, 6), math.nan))
    with pytest.raises(ModelError, match="not numbers"):
        sample(model, np.array([[7, EOS]]), DecodingConfig(sample=True))


def test_an_empty_batch_has_no_samples(table_model: type[TableModel]) -> None:
    model = table_model.random(2, symbols=6)
    assert sample(model, np.zeros((0, 3), dtype=np.int64), DecodingConfig(sample=True)) == []


def test_a_row_in_which_nothing_is_possible_is_refused() -> None:
    with pytest.raises(ModelError, match="not numbers"):
        TokenSampler().draw(np.full((1, 9), -math.inf), np.array([0.5]))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1, 100, 128, 129, 1000]), uniform=st.floats(0, 1 - 2**-53))
def test_a_large_vocabulary_is_drawn_from_as_if_weights_were_added_up_one_by_one(
    seed: int, size: int, uniform: float
) -> None:
    generator = np.random.default_rng(seed)
    weights = generator.random(size) * (generator.random(size) < 0.5)  # half of the tokens are impossible
    assume(weights.sum() > 0)
    with np.errstate(divide="ignore"):
        [token] = TokenSampler().draw(np.log(weights)[None], np.array([uniform])).tolist()
    before, after = math.fsum(weights[:token]), math.fsum(weights[: token + 1])
    assert before - 1e-9 <= uniform * math.fsum(weights) <= after + 1e-9
    assert weights[token] > 0


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), share=st.floats(0.1, 1.0, exclude_max=True), spread=st.sampled_from([0.1, 1, 4]))
def test_top_p_draws_from_the_fewest_tokens_of_a_sorted_list(seed: int, share: float, spread: float) -> None:
    weights = np.exp(spread * np.random.default_rng(seed).standard_normal((2, 500)))
    probabilities_RV = weights / weights.sum(axis=1, keepdims=True)
    uniform_R = np.random.default_rng(seed + 1).random(2)
    found = TokenSampler(top_p=share).draw(np.log(probabilities_RV), uniform_R).tolist()
    for row, uniform, token in zip(probabilities_RV.tolist(), uniform_R.tolist(), found, strict=True):
        order = sorted(range(500), key=lambda n, row=row: -row[n])  # type: ignore[misc]
        kept = [n for place, n in enumerate(order) if math.fsum(row[m] for m in order[:place]) < share - 1e-12]
        total = math.fsum(row[n] for n in kept)
        before = math.fsum(row[n] for n in kept[: kept.index(token)])
        assert before - 1e-9 <= uniform * total <= before + row[token] + 1e-9
