"""Progress with constraints, token by token, by hand and against looking at the finished output."""

import itertools

import pytest

from transduce.decoding.constraints import Constraint, ConstraintProgress, Constraints, Form, TermPlace
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.word_edges import WordEdges

EOS = OWN_SPECIAL_TOKENS.end

# A, B and C begin words; s and t go on with one; a word may begin without a mark after the quote only.
A, B, C, S, T, QUOTE = range(4, 10)
EDGES = WordEdges(
    is_open_after=(False,) * 9 + (True,),
    is_closed_by=(False, False, False, True, True, True, True, False, False, True),
)


def word(*tokens: int) -> Constraint:
    return Constraint((Form(tokens, needs_edge_after=True),))


def progress_after(constraints: Constraints, tokens: tuple[int, ...]) -> list[ConstraintProgress]:
    """Return the progress before the first token and after each."""
    progress = [constraints.start]
    for place, token in enumerate(tokens):
        progress.append(constraints.advance(progress[-1], tokens[:place], token))
    return progress


def banks(constraints: Constraints, tokens: tuple[int, ...]) -> list[int]:
    """Return how many tokens of the constraints are met after each token."""
    return [constraints.bank(progress) for progress in progress_after(constraints, tokens)[1:]]


def wanted(constraints: Constraints, tokens: tuple[int, ...]) -> set[int]:
    """Return the tokens that would begin or continue a term after these."""
    return constraints.wanted(progress_after(constraints, tokens)[-1], tokens)


@pytest.mark.parametrize(
    ("terms", "tokens", "expected"),
    [
        ([word(A)], (B, A, B, A, EOS), [0, 1, 1, 1, 1]),
        ([word(A)], (A, S, A, EOS), [1, 0, 1, 1]),  # As is another word
        ([word(A, S)], (A, B, A, S, T, A, S, EOS), [1, 0, 1, 2, 0, 1, 2, 2]),
        ([word(A), word(A)], (A, A, EOS), [1, 2, 2]),
        ([word(A), word(A)], (A, B, EOS), [1, 1, 1]),
        ([word(A, A, B)], (A, A, A, B, EOS), [1, 2, 2, 3, 3]),  # the run is shortened, not given up
        ([word(A, B), word(A, C)], (A, C, A, B, EOS), [1, 2, 3, 4, 4]),
        ([word(A), word(A, B)], (A, B, A, EOS), [1, 2, 3, 3]),  # the longer one first
        ([word(A), word(A, B)], (A, C, A, B, EOS), [1, 1, 2, 3, 3]),
        ([word(A, B), word(B, C)], (A, B, C, EOS), [1, 2, 2, 2]),  # a token serves one term
    ],
)
def test_what_is_met_by_hand(terms: list[Constraint], tokens: tuple[int, ...], expected: list[int]) -> None:
    assert banks(Constraints(terms, EDGES), tokens) == expected


def test_a_form_without_a_mark_stands_at_an_edge_only() -> None:
    both = Constraint((Form((A,), needs_edge_after=True), Form((S,), TermPlace.EDGE, needs_edge_after=True)))
    constraints = Constraints([both], EDGES)
    assert banks(constraints, (S, EOS)) == [1, 1]
    assert banks(constraints, (B, S, EOS)) == [0, 0, 0]
    assert banks(constraints, (QUOTE, S, QUOTE, EOS)) == [0, 1, 1, 1]
    assert banks(constraints, (QUOTE, S, T, EOS)) == [0, 1, 0, 0]
    assert wanted(constraints, (B,)) == {A}
    assert wanted(constraints, (QUOTE,)) == {A, S}


def test_a_form_may_be_for_the_beginning_of_the_output() -> None:
    constraints = Constraints([Constraint((Form((A,)), Form((B,), TermPlace.START)))], EDGES)
    assert banks(constraints, (B, EOS)) == [1, 1]
    assert banks(constraints, (QUOTE, B, A, B, EOS)) == [0, 0, 1, 1, 1]
    assert wanted(constraints, ()) == {A, B}
    assert wanted(constraints, (QUOTE,)) == {A}


def test_a_form_that_needs_no_edge_is_met_whatever_follows() -> None:
    assert banks(Constraints([Constraint((Form((A,)),))], EDGES), (A, S, EOS)) == [1, 1, 1]


def test_forms_of_several_lengths_count_alike_once_they_are_met() -> None:
    term = Constraint((Form((A, S, T), needs_edge_after=True), Form((B,), needs_edge_after=True)))
    assert banks(Constraints([term], EDGES), (B, C, EOS)) == [1, 3, 3]
    assert banks(Constraints([term], EDGES), (A, S, T, EOS)) == [1, 2, 3, 3]


@pytest.mark.parametrize("terms", [[(A,), (B, S)], [(A, S), (A, S)], [(A, B), (C, T)], [(A, S, B), (C,)]])
def test_an_output_has_met_exactly_the_terms_that_stand_in_it_as_words(terms: list[tuple[int, ...]]) -> None:
    constraints = Constraints([word(*term) for term in terms], EDGES)
    for length in range(6):
        for body in itertools.product((A, B, C, S, T), repeat=length):
            tokens = (*body, EOS)
            standing = [
                sum(
                    tokens[n : n + len(term)] == term and EDGES.is_closed_by[tokens[n + len(term)]]
                    for n in range(length - len(term) + 1)
                )
                for term in terms
            ]
            is_met = all(times >= terms.count(term) for term, times in zip(terms, standing, strict=True))
            assert (banks(constraints, tokens)[-1] == constraints.banks - 1) == is_met, tokens
