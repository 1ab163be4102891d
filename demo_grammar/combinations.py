"""Pairs of words that occur together in a sentence, and the pairs that training never sees.

A model that has seen "red car" and "old boat" should translate "red boat". A hash reserves about one in twenty-five
pairs of verb and object, or of adjective and noun, for every seed. A reserved pair never occurs in training, and every
sentence of the split test_combinations has at least one.
"""

import functools
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from demo_grammar.lexicon import Lexicon, lexicon
from demo_grammar.tree import Clause, ClueClause, Nominal, NounPhrase, PrepositionalPhrase, RelativePronoun, Sentence

_ONE_IN = 25
_FEWEST_PARTNERS = 12  # a word with fewer partners would hardly occur in training


class Combination(NamedTuple):
    """The keys in the lexicon of a verb and its object, or of an adjective and its noun."""

    first: str
    second: str


def combinations(tree: Sentence) -> set[Combination]:
    """Return every pair of verb and object, and of adjective and noun, in the sentence."""
    clauses = (tree.main, tree.subordinate, tree.joined)
    return {pair for clause in clauses if clause is not None for pair in _of_clause(clause, None)}


@functools.cache
def reserved() -> frozenset[Combination]:
    """Return the pairs that training never sees."""
    return frozenset(pair for pair in _possible(lexicon()) if zlib.crc32(" ".join(pair).encode()) % _ONE_IN == 0)


def _possible(words: Lexicon) -> Iterator[Combination]:
    nouns = words.nouns.values()
    partners = [(verb.key, frozenset(verb.accusatives + verb.targets)) for verb in words.verbs.values()]
    partners += [(adjective.key, adjective.classes) for adjective in words.adjectives.values()]
    for key, classes in partners:
        fitting = [noun.key for noun in nouns if not noun.classes.isdisjoint(classes)]
        if len(fitting) >= _FEWEST_PARTNERS:
            yield from (Combination(key, noun) for noun in fitting)


def _of_clause(tree: Clause | ClueClause, antecedent: NounPhrase | None) -> Iterator[Combination]:
    yield from _of_nominal(tree.subject)
    if isinstance(tree, ClueClause):
        return
    oblique = tree.oblique.nominal if tree.oblique is not None else None
    objects = (tree.subject,) if tree.is_passive else (tree.accusative, oblique)
    for phrase in objects:
        noun_phrase = antecedent if isinstance(phrase, RelativePronoun) else phrase
        if isinstance(noun_phrase, NounPhrase):
            yield Combination(tree.verb.key, _key(noun_phrase))
    for other in (tree.accusative, tree.dative, oblique, tree.place):
        if other is not None:
            yield from _of_nominal(other.nominal if isinstance(other, PrepositionalPhrase) else other)
    if tree.predicate is not None:
        predicate = tree.predicate
        subject = antecedent if isinstance(tree.subject, RelativePronoun) else tree.subject
        if predicate.adjective is not None and isinstance(subject, NounPhrase):
            yield Combination(predicate.adjective.key, _key(subject))
        for phrase in (predicate.nominal, predicate.than):
            yield from _of_nominal(phrase)
    if tree.content is not None:
        yield from _of_clause(tree.content.clause, None)


def _of_nominal(tree: Nominal | object) -> Iterator[Combination]:
    if not isinstance(tree, NounPhrase):
        return
    for adjective in tree.adjectives:
        yield Combination(adjective.key, _key(tree))
    if tree.owner is not None:
        yield from _of_nominal(tree.owner)
    if tree.relative is not None:
        yield from _of_clause(tree.relative, tree)


def _key(tree: NounPhrase) -> str:
    return tree.noun.key.removesuffix(".f")
