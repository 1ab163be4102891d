"""Choosing candidates fast must be choosing them right: against a full stable sort of all sums."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.decoding.candidates import best_candidates, stable_topk
from transduce.errors import ModelError
from transduce.networks.stepwise import LogProbabilities


def by_sorting(
    log_probabilities_BWV: LogProbabilities, alive_BW: LogProbabilities, count: int
) -> list[list[tuple[float, int, int]]]:
    """Return (log-probability, beam, token) of the best, ties to the lower beam and then to the lower token."""
    vocabulary_size = log_probabilities_BWV.shape[2]
    chosen = []
    for sums_WV in log_probabilities_BWV + alive_BW[:, :, None]:
        sums = sums_WV.ravel()
        order = sorted(range(len(sums)), key=lambda n: -sums[n])[:count]
        chosen.append([(float(sums[n]), *divmod(n, vocabulary_size)) for n in order])
    return chosen


def by_search(
    log_probabilities_BWV: LogProbabilities, alive_BW: LogProbabilities, count: int
) -> list[list[tuple[float, int, int]]]:
    best = best_candidates(log_probabilities_BWV, alive_BW, count=count)
    columns = (best.log_probabilities_BC.tolist(), best.beams_BC.tolist(), best.tokens_BC.tolist())
    return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    sentences=st.sampled_from([1, 11]),
    beams=st.sampled_from([1, 2, 5]),
    vocabulary_size=st.sampled_from([7, 64, 1021, 1024, 3001]),
    values=st.sampled_from([2, 5, 50, 10**6]),
    count=st.sampled_from([1, 2, 7, 10]),
)
def test_the_best_are_chosen_with_ties_to_the_lower_beam_then_the_lower_token(
    seed: int, sentences: int, beams: int, vocabulary_size: int, values: int, count: int
) -> None:
    # Few different values make many ties, inside the chosen and at their edge.
    generator = np.random.default_rng(seed)
    shape = (sentences, beams, vocabulary_size)
    log_probabilities_BWV = -generator.integers(values, size=shape).astype(np.float32) - 1
    alive_BW = -generator.integers(3, size=shape[:2]).astype(np.float32)
    expected = by_sorting(log_probabilities_BWV, alive_BW, count)
    assert by_search(log_probabilities_BWV, alive_BW, count) == expected


@pytest.mark.parametrize("vocabulary_size", [8000, 8003])
def test_a_large_vocabulary_is_looked_into_by_runs_and_nothing_is_missed(vocabulary_size: int) -> None:
    log_probabilities_BWV = np.random.default_rng(0).standard_normal((2, 4, vocabulary_size)).astype(np.float32) - 9
    # The last run's last token, a tie across two beams, and a beam that is no longer alive.
    log_probabilities_BWV[0, 3, vocabulary_size - 1] = -0.25
    log_probabilities_BWV[1, :2, 100] = -0.5
    alive_BW = np.array([[-1.0, -2.0, -math.inf, -0.5], [-1.0, -1.0, -2.0, -3.0]], dtype=np.float32)
    assert by_search(log_probabilities_BWV, alive_BW, 8) == by_sorting(log_probabilities_BWV, alive_BW, 8)


def test_a_tie_between_runs_goes_to_the_lower_token_even_if_the_higher_run_is_better() -> None:
    log_probabilities_BWV = np.full((2, 4, 8000), -5.0)
    log_probabilities_BWV[:, 1, [500, 510, 10, 20]] = [-0.5, -1.0, -0.75, -1.0]
    best = best_candidates(log_probabilities_BWV, np.zeros((2, 4)), count=4)
    assert best.tokens_BC.tolist() == [[500, 10, 20, 510]] * 2
    assert best.beams_BC.tolist() == [[1, 1, 1, 1]] * 2


@pytest.mark.parametrize("vocabulary_size", [301, 20_000])
def test_what_cannot_be_is_chosen_last_and_marked(vocabulary_size: int) -> None:
    log_probabilities_BWV = np.full((1, 3, vocabulary_size), -math.inf)
    log_probabilities_BWV[0, 0, vocabulary_size - 2] = -1.5
    best = best_candidates(log_probabilities_BWV, np.array([[-1.0, -math.inf, -math.inf]]), count=6)
    assert best.log_probabilities_BC.tolist() == [[-2.5, *[-math.inf] * 5]]
    assert (int(best.beams_BC[0, 0]), int(best.tokens_BC[0, 0])) == (0, vocabulary_size - 2)
    assert ((best.tokens_BC >= 0) & (best.tokens_BC < vocabulary_size)).all()  # each can be fed to the model


def test_all_there_are_come_back_when_fewer_exist() -> None:
    values_BN = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    best_BC, position_BC = stable_topk(values_BN, count=9)
    assert best_BC.tolist() == [[3.0, 3.0, 1.0], [2.0, 2.0, 2.0]]
    assert position_BC.tolist() == [[1, 2, 0], [0, 1, 2]]


def test_where_nothing_is_possible_all_are_marked() -> None:
    best = best_candidates(np.full((2, 3, 500), -math.inf), np.zeros((2, 3)), count=4)
    assert best.log_probabilities_BC.tolist() == [[-math.inf] * 4] * 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 8])
def test_the_precision_of_the_model_stays(dtype: type[np.floating], count: int) -> None:
    log_probabilities_BWV = np.random.default_rng(0).standard_normal((2, 4, 700)).astype(dtype)
    best = best_candidates(log_probabilities_BWV, np.zeros((2, 4), dtype=np.float32), count=count)
    assert best.log_probabilities_BC.dtype == dtype


@pytest.mark.parametrize("token", [0, 123, 8002])
@pytest.mark.parametrize("count", [1, 8])
def test_one_value_that_is_not_a_number_is_refused_wherever_it_is(token: int, count: int) -> None:
    log_probabilities_BWV = np.zeros((2, 4, 8003))
    log_probabilities_BWV[1, 2, token] = math.nan
    with pytest.raises(ModelError, match="not numbers"):
        best_candidates(log_probabilities_BWV, np.zeros((2, 4)), count=count)
