"""The constrained search against exhaustive enumeration, the plain search, and laws."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import DecodingConfig
from transduce.decoding.constrained_search import MOST_ROWS, bank_beam, constrained_search
from transduce.decoding.constraints import Constraint, Constraints, Form
from transduce.decoding.hypothesis import Hypothesis
from transduce.errors import ModelError
from transduce.model import ModelConfig, Transformer
from transduce.networks.torch_stepper import TorchStepper
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.word_edges import WordEdges

EOS = OWN_SPECIAL_TOKENS.end
PAD = OWN_SPECIAL_TOKENS.padding

if TYPE_CHECKING:
    from tests.decoding.conftest import TableModel

SOURCE = np.array([[7, EOS]])
Term = tuple[int, ...]


def edges(size: int, *, inner: set[int]) -> WordEdges:
    """Return edges among which the inner tokens go on with the word before them."""
    return WordEdges((False,) * size, tuple(token >= EOS and token not in inner for token in range(size)))


def constraints_of(terms: list[Term], own: WordEdges) -> Constraints:
    return Constraints([Constraint((Form(term, needs_edge_after=True),)) for term in terms], own)


def times(term: Term, tokens: tuple[int, ...], own: WordEdges) -> int:
    """Return how often a term stands in an output, not inside of a longer word."""
    return sum(
        tokens[n : n + len(term)] == term and own.is_closed_by[tokens[n + len(term)]]
        for n in range(len(tokens) - len(term))
    )


def holds(tokens: tuple[int, ...], terms: list[Term], own: WordEdges) -> bool:
    return all(times(term, tokens, own) >= terms.count(term) for term in terms)


def best_by_enumeration(
    model: TableModel, *, longest: int, alpha: float, terms: list[Term], own: WordEdges
) -> list[Hypothesis]:
    found = []
    for length in range(1, longest + 1):
        for body in itertools.product(range(4, model.log_table_NMV.shape[2]), repeat=length - 1):
            tokens = (*body, EOS)
            if holds(tokens, terms, own):
                parts = [model.log_probabilities(7, tokens[:n])[token] for n, token in enumerate(tokens)]
                score = sum(parts) / ((5 + length) / 6) ** alpha
                found.append(Hypothesis(tokens, sum(parts), score, is_finished=True))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


# Terms that share no token, of which each is written with tokens of its own; the last symbol goes on with a word.
TERMS = st.sampled_from(
    [[(4,)], [(4,), (4,)], [(4, 5)], [(4, 6)], [(4,), (5,)], [(4, 4)], [(4, 6), (5,)], [(4, 5, 4)], [(4, 5), (4, 5)]]
)
ALPHAS = st.sampled_from([0.0, 0.6, 2.0])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), terms=TERMS, alpha=ALPHAS, alternatives=st.integers(1, 3), longest=st.integers(2, 5))
def test_a_beam_wide_enough_finds_the_best_of_all_outputs_that_hold_the_terms(
    table_model: type[TableModel], seed: int, terms: list[Term], alpha: float, alternatives: int, longest: int
) -> None:
    model, own = table_model.random(seed, symbols=3), edges(7, inner={6})
    config = DecodingConfig(beam=243, maximum_length=longest, length_penalty=alpha, alternatives=alternatives)
    constraints = constraints_of(terms, own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transduce.decoding.constrained_search.MOST_ROWS", 10**6)
        [found] = constrained_search(model, SOURCE, config, constraints=[constraints])
    expected = best_by_enumeration(model, longest=longest, alpha=alpha, terms=terms, own=own)[:alternatives]
    finished = [hypothesis for hypothesis in found if hypothesis.is_finished]
    assert [hypothesis.tokens for hypothesis in finished] == [hypothesis.tokens for hypothesis in expected]
    assert len(finished) in (len(found), 0)
    for ours, theirs in zip(finished, expected, strict=True):
        assert ours.score == pytest.approx(theirs.score, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 5),
    alpha=ALPHAS,
    stop=st.sampled_from(["certain", "full"]),
    alternatives=st.integers(1, 5),
)
def test_without_constraints_it_is_the_plain_search(
    table_model: type[TableModel], seed: int, beam: int, alpha: float, stop: str, alternatives: int
) -> None:
    model, own = table_model.random(seed, symbols=5), edges(9, inner={6})
    config = DecodingConfig.model_validate(
        {"beam": beam, "length_penalty": alpha, "stop": stop, "alternatives": min(beam, alternatives)}
    )
    [found] = constrained_search(model, SOURCE, config, constraints=[Constraints([], own)])
    steps, model.rows_of_step = model.rows_of_step, []
    [plain] = beam_search(model, SOURCE, config)
    assert found == plain
    assert steps == model.rows_of_step


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 4), terms=TERMS, prefix=st.lists(st.integers(4, 6), max_size=3))
def test_every_output_holds_every_term_and_its_log_probability_is_the_models(
    table_model: type[TableModel], seed: int, beam: int, terms: list[Term], prefix: list[int]
) -> None:
    model, own = table_model.random(seed, symbols=5), edges(9, inner={6})
    config = DecodingConfig(beam=beam, alternatives=beam)
    constraints = constraints_of(terms, own)
    [found] = constrained_search(model, SOURCE, config, constraints=[constraints], prefixes=[prefix])
    assert found
    for hypothesis in found:
        assert holds((*hypothesis.tokens, EOS), terms, own)
        assert list(hypothesis.tokens[: len(prefix)]) == prefix
        parts = [model.log_probabilities(7, hypothesis.tokens[:n])[t] for n, t in enumerate(hypothesis.tokens)]
        assert hypothesis.log_probability == pytest.approx(sum(parts), abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), alpha=ALPHAS, data=st.data())
def test_asking_for_what_the_best_output_has_anyway_loses_nothing(
    table_model: type[TableModel], seed: int, alpha: float, data: st.DataObject
) -> None:
    model, own = table_model.random(seed, symbols=4), edges(8, inner=set())
    config = DecodingConfig(beam=16, length_penalty=alpha, minimum_length=3, maximum_length=6)
    [[plain]] = beam_search(model, SOURCE, config)
    assume(plain.is_finished)
    start = data.draw(st.integers(0, len(plain.tokens) - 2))
    term = plain.tokens[start : data.draw(st.integers(start + 1, len(plain.tokens) - 1))]
    [[found]] = constrained_search(model, SOURCE, config, constraints=[constraints_of([term], own)])
    assert found.score >= plain.score - 1e-10


@pytest.mark.parametrize("beam", [1, 3])
def test_a_sentence_is_found_alike_alone_and_in_any_company(table_model: type[TableModel], beam: int) -> None:
    own = edges(9, inner={6})
    sources_BS = np.array([[4 + n, *[9] * (n % 5), EOS, *[PAD] * (4 - n % 5)] for n in range(23)])
    terms: list[list[Term]] = [[], [(4,)], [(7, 6), (8,)], [(5,), (5,), (5,)]]
    constraints = [constraints_of(terms[n % 4], own) for n in range(23)]
    config = DecodingConfig(beam=beam, extra_length=9, alternatives=beam)
    model = table_model.random(5, symbols=5, sources=23)
    together = constrained_search(model, sources_BS, config, constraints=constraints)
    for n in range(23):
        source_BS = sources_BS[n : n + 1, : 2 + n % 5]
        [alone] = constrained_search(model, source_BS, config, constraints=[constraints[n]])
        assert alone == together[n]
        if n % 4 == 0:
            [plain] = beam_search(model, source_BS, config)
            assert plain == alone


def test_a_sentence_with_many_hypotheses_may_leave_before_one_with_few(table_model: type[TableModel]) -> None:
    # Source 0 ends at once if it may; source 1 goes on to its limit.
    table_NMV = np.full((2, 9, 9), 0.01)
    table_NMV[0, :, EOS], table_NMV[1, :, 8] = 0.92, 0.92
    model, own = table_model(table_NMV), edges(9, inner=set())
    constraints = [constraints_of([(4, 5, 6), (7,)], own), constraints_of([(4,)], own)]
    config = DecodingConfig(extra_length=8)
    together = constrained_search(model, np.array([[4, EOS], [5, EOS]]), config, constraints=constraints)
    rows, model.rows_of_step = model.rows_of_step, []
    for n in range(2):
        source_BS = np.array([[4 + n, EOS]])
        [alone] = constrained_search(model, source_BS, config, constraints=[constraints[n]])
        assert alone == together[n]
    assert max(rows) > 2 * rows[-1]


def test_a_real_network_finds_the_same_in_any_company() -> None:
    torch.manual_seed(3)
    sizes = {"layers": 1, "d_model": 8, "d_ff": 16, "heads": 2}
    network = Transformer(ModelConfig.model_validate({"vocabulary_size": 40, **sizes})).double().eval()
    stepper, own = TorchStepper(network), edges(40, inner=set(range(30, 40)))
    sources_BS = np.array([[5 + n, 6, *[8] * (n % 3), EOS, *[PAD] * (2 - n % 3)] for n in range(9)])
    terms: list[list[Term]] = [[(9,)], [(11, 33), (12,)], [(13, 34, 35), (13, 34, 35)]]
    constraints = [constraints_of(terms[n % 3], own) for n in range(9)]
    config = DecodingConfig(extra_length=14)
    together = constrained_search(stepper, sources_BS, config, constraints=constraints)
    for n in range(9):
        source_BS = sources_BS[n : n + 1, : 3 + n % 3]
        [[alone]] = constrained_search(stepper, source_BS, config, constraints=[constraints[n]])
        assert alone.tokens == together[n][0].tokens
        assert alone.score == pytest.approx(together[n][0].score, abs=1e-12)
        assert holds((*alone.tokens, EOS), terms[n % 3], own)


@pytest.mark.parametrize("beam", [1, 2])
def test_a_term_that_the_model_finds_all_but_impossible_is_placed_once(
    table_model: type[TableModel], beam: int
) -> None:
    # After every token the model wants 4 or the end; 5 6 has one chance in 10^12, and all that is likely after it would
    # make a longer word of it.
    table_MV = np.full((15, 15), 1e-6)
    table_MV[:, [EOS, 4]] = [0.3, 0.6]
    table_MV[6] = [0, 0, 0, 1e-3, 1e-3, 1e-4, *[0.1] * 9]
    own = edges(15, inner=set(range(6, 15)))
    config = DecodingConfig(beam=beam)
    [[found]] = constrained_search(
        table_model(table_MV[None]), SOURCE, config, constraints=[constraints_of([(5, 6)], own)]
    )
    assert times((5, 6), (*found.tokens, EOS), own) == 1
    assert found.tokens.count(5) == 1  # not once more only to close the first


def test_where_the_limit_leaves_room_for_the_terms_only_they_are_found_and_where_for_less_nothing(
    table_model: type[TableModel],
) -> None:
    model, own = table_model.random(3, symbols=4), edges(8, inner=set())
    constraints = constraints_of([(4, 5, 6)], own)
    nothing, unfinished, finished = (
        constrained_search(model, SOURCE, DecodingConfig(maximum_length=longest), constraints=[constraints])[0]
        for longest in (2, 3, 4)
    )
    assert nothing == []
    assert [(own.tokens, own.is_finished) for own in unfinished] == [((4, 5, 6), False)]
    assert [(own.tokens, own.is_finished) for own in finished] == [((4, 5, 6, EOS), True)]


def test_many_constraints_narrow_the_banks_and_are_still_met(table_model: type[TableModel]) -> None:
    model, own = table_model.random(3, symbols=4), edges(8, inner=set())
    terms: list[Term] = [(4, 5)] * 33
    constraints = constraints_of(terms, own)
    config = DecodingConfig(extra_length=90)
    assert bank_beam(constraints, config) == 1
    assert bank_beam(constraints_of([(4, 5)], own), config) == 4
    [[found]] = constrained_search(model, SOURCE, config, constraints=[constraints])
    assert times((4, 5), found.tokens, own) >= 33
    assert max(model.rows_of_step) <= MOST_ROWS


def test_probabilities_that_are_not_numbers_are_refused(table_model: type[TableModel]) -> None:
    own = edges(6, inner=set())
    model = table_model(np.full((6, 6), np.nan)[None])
    with pytest.raises(ModelError, match="not numbers"):
        constrained_search(model, SOURCE, DecodingConfig(), constraints=[constraints_of([(4,)], own)])
