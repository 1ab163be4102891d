"""The search against values worked out by hand, exhaustive enumeration, and laws that need no network."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import DecodingConfig
from transduce.decoding.hypothesis import Hypothesis
from transduce.errors import ModelError
from transduce.special_tokens import OWN_SPECIAL_TOKENS

EOS = OWN_SPECIAL_TOKENS.end

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

A, B = 4, 5
SOURCE = np.array([[7, EOS]])


def enumerate_finished(model: TableModel, source: int, *, longest: int, alpha: float) -> list[Hypothesis]:
    """Return every output of at most `longest` tokens, the best score first; the plainest search there is."""
    symbols = range(4, model.log_table_NMV.shape[2])
    found = []
    for length in range(1, longest + 1):
        for body in itertools.product(symbols, repeat=length - 1):
            tokens = (*body, EOS)
            log_probability = sum(
                model.log_probabilities(source, tokens[:place])[token] for place, token in enumerate(tokens)
            )
            score = log_probability / ((5 + length) / 6) ** alpha
            found.append(Hypothesis(tokens, log_probability, score, is_finished=True))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


def limited_to(longest: int, **settings: object) -> DecodingConfig:
    return DecodingConfig.model_validate({"extra_length": 50, "maximum_length": longest, **settings})


def first_model(table_model: type[TableModel]) -> TableModel:
    return table_model.chain(start=[0.1, 0.6, 0.3], after_a=[0.2, 0.1, 0.7], after_b=[0.3, 0.6, 0.1])


def second_model(table_model: type[TableModel]) -> TableModel:
    return table_model.chain(start=[0.0, 0.55, 0.45], after_a=[0.5, 0.3, 0.2], after_b=[0.9, 0.06, 0.04])


@pytest.mark.parametrize(
    ("alpha", "tokens", "score", "steps"),
    [
        (0.0, (A, B, EOS), -2.07147337, 5),
        (0.6, (A, B, EOS), -1.74307516, 7),
        (1.0, (A, B, EOS), -1.55360503, None),
        (2.0, (A, B, A, B, A, B, EOS), -0.95161863, None),
    ],
)
def test_the_first_chain_has_the_values_worked_out_by_hand(
    table_model: type[TableModel], alpha: float, tokens: tuple[int, ...], score: float, steps: int | None
) -> None:
    model = first_model(table_model)
    [[best]] = beam_search(model, SOURCE, limited_to(8, length_penalty=alpha))
    assert best.tokens == tokens
    assert best.is_finished
    assert best.score == pytest.approx(score, abs=1e-8)
    assert steps is None or len(model.rows_of_step) == steps
    exhaustive = enumerate_finished(model, 7, longest=8, alpha=alpha)[0]
    assert best.tokens == exhaustive.tokens
    assert best.log_probability == pytest.approx(exhaustive.log_probability, abs=1e-12)


def test_the_first_chain_finishes_the_list_worked_out_by_hand(table_model: type[TableModel]) -> None:
    [found] = beam_search(first_model(table_model), SOURCE, limited_to(8, alternatives=4))
    assert [hypothesis.tokens for hypothesis in found] == [(A, B, EOS), (A, EOS), (A, B, A, B, EOS), (B, EOS)]
    scores = [hypothesis.score for hypothesis in found]
    assert scores == pytest.approx([-1.74307516, -1.93295512, -2.16314925, -2.19522277], abs=1e-8)


@pytest.mark.parametrize(
    ("beam", "tokens", "score", "steps"),
    [(1, (A, EOS), -1.17693600, 2), (2, (B, EOS), -0.82401865, 2), (4, (B, EOS), -0.82401865, 2)],
)
def test_the_second_chain_shows_the_search_error_of_width_one(
    table_model: type[TableModel], beam: int, tokens: tuple[int, ...], score: float, steps: int
) -> None:
    model = second_model(table_model)
    [[best]] = beam_search(model, SOURCE, limited_to(8, beam=beam))
    assert best.tokens == tokens
    assert best.score == pytest.approx(score, abs=1e-8)
    assert len(model.rows_of_step) == steps


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    symbols=st.integers(1, 3),
    longest=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.0]),
    alternatives=st.integers(1, 7),
)
def test_a_beam_wide_enough_is_exhaustive_search(
    table_model: type[TableModel], seed: int, symbols: int, longest: int, alpha: float, alternatives: int
) -> None:
    model = table_model.random(seed, symbols=symbols)
    wide_enough = max(alternatives, symbols**longest, 2)  # width 1 is greedy
    config = limited_to(longest, beam=wide_enough, length_penalty=alpha, alternatives=alternatives)
    [found] = beam_search(model, SOURCE, config)
    expected = enumerate_finished(model, 7, longest=longest, alpha=alpha)[:alternatives]
    assert [hypothesis.tokens for hypothesis in found] == [hypothesis.tokens for hypothesis in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.log_probability == pytest.approx(theirs.log_probability, abs=1e-10)
        assert ours.score == pytest.approx(theirs.score, abs=1e-10)


def distinct(ranked: list[tuple[float, tuple[int, ...]]]) -> list[tuple[float, tuple[int, ...]]]:
    assume(all(better - worse > 1e-9 for (better, _), (worse, _) in itertools.pairwise(ranked)))
    return ranked


def plain_beam_search(
    model: TableModel, *, beam: int, longest: int, alpha: float, stops_when_full: bool = False
) -> list[tuple[float, tuple[int, ...]]]:
    """The authors' beam search in lists, one hypothesis at a time, with no early stop: (score, tokens), best first.

    Or that of other toolkits: only an end among the `beam` best candidates counts, and `beam` of those are enough.
    Where none has finished, those alive are given back. Only the last token decides how probable the next is, so the
    same steps in another order are as likely, but for the last digits: such cases have no one answer and are left out.
    """
    penalty = 1.0
    alive: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, longest + 1):
        penalty = ((5 + length) / 6) ** alpha
        extended = [
            (log_probability + more, (*tokens, token))
            for log_probability, tokens in alive
            for token, more in enumerate(model.log_probabilities(7, tokens))
            if token >= EOS
        ]
        candidates = distinct(sorted(extended, reverse=True)[: 2 * beam + 1])[: 2 * beam]
        alive = [candidate for candidate in candidates if candidate[1][-1] != EOS][:beam]
        heard = candidates[:beam] if stops_when_full else candidates
        finished += [(score / penalty, tokens) for score, tokens in heard if tokens[-1] == EOS]
        finished = distinct(sorted(finished, reverse=True)[: beam + 1])[:beam]
        if stops_when_full and len(finished) == beam:
            break
    return finished or [(score / penalty, tokens) for score, tokens in alive]


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(2, 5),
    alpha=st.sampled_from([0.0, 0.6, 2.0]),
    alternatives=st.integers(1, 5),
)
@example(seed=864, beam=2, alpha=0.6, alternatives=2)  # in which no hypothesis finishes
def test_a_narrow_beam_finds_what_the_plain_form_finds_and_stopping_early_loses_nothing(
    table_model: type[TableModel], seed: int, beam: int, alpha: float, alternatives: int
) -> None:
    model = table_model.random(seed, symbols=4)
    alternatives = min(alternatives, beam)
    config = limited_to(10, beam=beam, length_penalty=alpha, alternatives=alternatives)
    [found] = beam_search(model, SOURCE, config)
    expected = plain_beam_search(model, beam=beam, longest=10, alpha=alpha)[:alternatives]
    assert [hypothesis.tokens for hypothesis in found] == [tokens for _, tokens in expected]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-10)


@settings(max_examples=80)
@given(seed=st.integers(0, 10**6), beam=st.integers(2, 5), alpha=st.sampled_from([0.0, 0.6, 2.0]))
def test_a_full_search_finds_what_the_plain_form_of_other_toolkits_finds(
    table_model: type[TableModel], seed: int, beam: int, alpha: float
) -> None:
    model = table_model.random(seed, symbols=4)
    config = limited_to(10, beam=beam, length_penalty=alpha, alternatives=beam, stop="full")
    [found] = beam_search(model, SOURCE, config)
    expected = plain_beam_search(model, beam=beam, longest=10, alpha=alpha, stops_when_full=True)
    assert [hypothesis.tokens for hypothesis in found] == [tokens for _, tokens in expected]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-10)


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6), longest=st.integers(1, 9))
def test_width_one_takes_the_likeliest_token_until_the_first_end(
    table_model: type[TableModel], seed: int, longest: int
) -> None:
    model = table_model.random(seed, symbols=5)
    [[found]] = beam_search(model, SOURCE, limited_to(longest, beam=1))
    tokens: tuple[int, ...] = ()
    log_probability = 0.0
    while len(tokens) < longest and tokens[-1:] != (EOS,):
        row = model.log_probabilities(7, tokens)
        best = max(range(EOS, len(row)), key=row.__getitem__)
        tokens, log_probability = (*tokens, best), log_probability + row[best]
    assert found.tokens == tokens
    assert found.is_finished == (tokens[-1] == EOS)
    assert found.log_probability == pytest.approx(log_probability, abs=1e-10)


def test_ties_go_to_the_lower_beam_then_to_the_lower_token(table_model: type[TableModel]) -> None:
    # Every symbol is as likely as every other, and the end never comes.
    table_MV = np.zeros((11, 11), dtype=np.float32)
    table_MV[:, 4:] = 1 / 7
    model = table_model(table_MV[None])
    [found] = beam_search(model, SOURCE, limited_to(3, beam=5, alternatives=5))
    assert [hypothesis.tokens for hypothesis in found] == [(4, 4, 4), (4, 4, 5), (4, 4, 6), (4, 4, 7), (4, 4, 8)]


def test_where_nothing_finishes_the_hypotheses_alive_are_given_back(table_model: type[TableModel]) -> None:
    model = table_model.chain(start=[0.0, 0.7, 0.3], after_a=[0.0, 0.2, 0.8], after_b=[0.0, 0.9, 0.1])
    [found] = beam_search(model, SOURCE, limited_to(3, beam=2, alternatives=2))
    assert [hypothesis.tokens for hypothesis in found] == [(A, B, A), (B, A, B)]
    assert not any(hypothesis.is_finished for hypothesis in found)
    assert found[0].log_probability == pytest.approx(math.log(0.7 * 0.8 * 0.9), abs=1e-12)
    assert found[0].score == pytest.approx(math.log(0.7 * 0.8 * 0.9) / (8 / 6) ** 0.6, abs=1e-12)


def test_fewer_alternatives_come_back_where_fewer_exist(table_model: type[TableModel]) -> None:
    model = table_model.chain(start=[0.4, 0.6, 0.0], after_a=[1.0, 0.0, 0.0], after_b=[0.0, 0.0, 0.0])
    [found] = beam_search(model, SOURCE, limited_to(9, beam=4, alternatives=4, length_penalty=0.0))
    assert [hypothesis.tokens for hypothesis in found] == [(A, EOS), (EOS,)]
    assert len(model.rows_of_step) == 2  # with nothing left alive, the sentence is done


def test_where_nothing_is_possible_nothing_is_found_and_the_search_ends(table_model: type[TableModel]) -> None:
    model = table_model.chain(start=[1.0, 0.0, 0.0], after_a=[0.0, 0.0, 0.0], after_b=[0.0, 0.0, 0.0])
    [[found]] = beam_search(model, SOURCE, limited_to(9, minimum_length=3))
    assert found == Hypothesis(tokens=(), log_probability=-math.inf, score=-math.inf, is_finished=False)


def test_an_empty_batch_has_no_outputs(table_model: type[TableModel]) -> None:
    assert beam_search(first_model(table_model), np.zeros((0, 3), dtype=np.int64), DecodingConfig()) == []


def test_a_sentence_is_found_alike_alone_and_in_any_company(table_model: type[TableModel]) -> None:
    sources_BS = np.array([[4 + n, *[9] * (n % 5), EOS, *[0] * (4 - n % 5)] for n in range(23)])
    for beam, alternatives in ((1, 1), (3, 2)):
        config = DecodingConfig(beam=beam, alternatives=alternatives, extra_length=3)
        model = table_model.random(5, symbols=4, sources=23)
        together = beam_search(model, sources_BS, config)
        order = np.random.default_rng(1).permutation(23)
        shuffled = beam_search(model, sources_BS[order], config)
        for place, number in enumerate(order.tolist()):
            assert shuffled[place] == together[number]
            own_length = 2 + number % 5
            [alone] = beam_search(model, sources_BS[number : number + 1, :own_length], config)
            assert alone == together[number]
            assert all(len(hypothesis.tokens) <= own_length + 3 for hypothesis in alone)


def test_finished_sentences_leave_the_batch_at_once(table_model: type[TableModel]) -> None:
    # Source 0 ends after one token for certain; source 1 goes on to its limit.
    table_NMV = np.zeros((2, 6, 6))
    table_NMV[0, :, EOS] = 1.0
    table_NMV[1, :, A] = 1.0
    model = table_model(table_NMV)
    beam_search(model, np.array([[4, EOS], [5, EOS], [6, EOS]]), limited_to(4, beam=1))
    assert model.rows_of_step == [3, 1, 1, 1]


def test_the_first_step_asks_for_one_beam_only(table_model: type[TableModel]) -> None:
    model = table_model.random(3, symbols=9)
    beam_search(model, SOURCE, limited_to(3, beam=4))
    assert model.rows_of_step[:2] == [1, 4]


def test_probabilities_that_are_not_numbers_are_refused(table_model: type[TableModel]) -> None:
    table_MV = np.full((6, 6), math.nan)
    with pytest.raises(ModelError, match=r"not numbers.*earlier checkpoint"):
        beam_search(table_model(table_MV[None]), SOURCE, DecodingConfig())


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6, 7])  # with 4, hardly anything ends among the best three
def test_a_full_search_stops_with_the_step_in_which_the_last_place_among_the_finished_is_taken(
    table_model: type[TableModel], seed: int
) -> None:
    model = table_model.random(seed, symbols=3)
    [found] = beam_search(model, SOURCE, limited_to(40, beam=3, alternatives=3, stop="full"))
    steps = len(model.rows_of_step)
    assert [hypothesis.is_finished for hypothesis in found] == [True] * 3
    assert steps < 40
    [earlier] = beam_search(model, SOURCE, limited_to(steps - 1, beam=3, alternatives=3, stop="full"))
    assert sum(hypothesis.is_finished for hypothesis in earlier) < 3
