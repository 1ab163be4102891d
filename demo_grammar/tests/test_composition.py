"""A sentence contains everything that its translation needs."""

import hashlib
import itertools
import random
import re
from collections.abc import Iterator

import pytest

from demo_grammar import english, german
from demo_grammar.chance import Chance
from demo_grammar.composition import compose
from demo_grammar.lexicon import lexicon
from demo_grammar.tree import DU, IHR, SIE, WHAT, Clause, ClueClause, NounPhrase, Pronoun, Sentence


def _nouns(tree: object) -> Iterator[NounPhrase]:
    """Yield every noun phrase anywhere in a tree."""
    if isinstance(tree, NounPhrase):
        yield tree
    if isinstance(tree, tuple):
        for part in tree:
            yield from _nouns(part)


def _clauses(tree: object) -> Iterator[Clause]:
    if isinstance(tree, Clause):
        yield tree
    if isinstance(tree, tuple):
        for part in tree:
            yield from _clauses(part)


def test_chance_uses_only_the_sequence_that_python_promises_to_keep() -> None:
    seed = int.from_bytes(hashlib.sha256(b"5 a").digest()[:8], "big")
    promised = random.Random(seed)
    chance = Chance(5, stream="a")
    assert [chance.below(1000) for _ in range(20)] == [int(promised.random() * 1000) for _ in range(20)]
    assert [chance.between(3, 7) for _ in range(20)] == [3 + int(promised.random() * 5) for _ in range(20)]
    assert [chance.one("abc") for _ in range(20)] == ["abc"[int(promised.random() * 3)] for _ in range(20)]
    assert Chance(5, stream="a").below(10**9) != Chance(5, stream="b").below(10**9)


def test_chance_is_fair() -> None:
    chance = Chance(1, stream="fair")
    counts = [0] * 7
    for _ in range(7000):
        counts[chance.one(range(7))] += 1
    assert all(850 < count < 1150 for count in counts)
    assert 0.27 < sum(chance.holds(0.3) for _ in range(5000)) / 5000 < 0.33


def test_she_her_or_a_name_states_that_a_teacher_is_a_woman(trees: list[Sentence]) -> None:
    women = {word.english for word in lexicon().words["name"] if "she" in word.flags}
    seen = 0
    for tree in trees:
        if any(phrase.noun.key.endswith(".f") for phrase in _nouns(tree)):
            words = set(re.findall(r"\w+", english.sentence(tree)))
            assert words & ({"she", "her", "She"} | women), english.sentence(tree)
            seen += 1
    assert seen > 50


def test_the_addressee_decides_the_translation_of_you(trees: list[Sentence]) -> None:
    seen = {DU: 0, IHR: 0, SIE: 0}
    for tree in trees:
        text = english.sentence(tree)
        if not re.search(r"\byour?\b", text, re.IGNORECASE):
            continue
        assert tree.addressee is not None, text
        expected = SIE if re.match(r"Mrs? ", tree.addressee.english) else IHR if tree.addressee.is_plural else DU
        used = {part for part in _pronouns(tree) if part.english == "you"}
        assert used <= {expected}, german.sentence(tree)
        seen[expected] += 1
    assert min(seen.values()) > 20


def _pronouns(tree: object) -> Iterator[Pronoun]:
    if isinstance(tree, Pronoun):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from _pronouns(part)


def test_a_clue_decides_the_sense_of_an_ambiguous_noun(trees: list[Sentence]) -> None:
    words = lexicon()
    ambiguous = {words.nouns[clue.sense].english for clue in words.clues}
    usual = {"key.lock", "letter.mail", "table"}  # the usual sense, which needs no clue
    seen = 0
    for tree in trees:
        for phrase in _nouns(tree):
            if phrase.noun.english in ambiguous and phrase.noun.key not in usual and "data" not in phrase.noun.key:
                clue_clauses = list(_clue_clauses(tree))
                assert clue_clauses, english.sentence(tree)
                assert phrase.noun.key in {clause.clue.sense for clause in clue_clauses}
                seen += 1
    assert seen > 100


def _clue_clauses(tree: object) -> Iterator[ClueClause]:
    if isinstance(tree, ClueClause):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from _clue_clauses(part)


def test_present_and_past_have_different_forms(trees: list[Sentence]) -> None:
    for tree in trees:
        if tree.kind != "statement":
            continue
        for clause in _clauses((tree.main, tree.subordinate, tree.joined)):
            verb = clause.verb.english
            is_bare = clause.modal is None and not clause.negation and english.agreement_of(clause.subject) != 1
            if verb.base == verb.past and is_bare and clause.tense == "present" and not _is_infinitive(tree, clause):
                raise AssertionError(english.sentence(tree))


def _is_infinitive(tree: Sentence, clause: Clause) -> bool:
    return any(
        outer.content is not None and outer.content.clause is clause and "to" in outer.content.conjunction
        for outer in _clauses(tree)
    )


@pytest.mark.slow
def test_english_determines_german_in_a_hundred_thousand_sentences() -> None:
    translations: dict[str, str] = {}
    for tree in itertools.islice(compose(3, stream="many"), 100_000):
        source, target = english.sentence(tree), german.sentence(tree)
        assert translations.setdefault(source, target) == target


def test_what_is_asked_only_where_the_verb_has_one_meaning(trees: list[Sentence]) -> None:
    meanings: dict[tuple[str, str], set[str]] = {}
    for verb in lexicon().verbs.values():
        if verb.accusatives:
            infinitive = verb.german.full_infinitive
            meanings.setdefault((verb.english.base, verb.english.particle), set()).add(infinitive)
    seen = 0
    for tree in trees:
        for clause in _clauses(tree):
            if clause.accusative is WHAT:
                assert len(meanings[clause.verb.english.base, clause.verb.english.particle]) == 1, english.sentence(
                    tree
                )
                seen += 1
    assert seen > 5


def test_she_and_her_never_occur_with_a_person_of_unstated_sex(trees: list[Sentence]) -> None:
    seen = 0
    for tree in trees:
        hidden = [p for p in _nouns(tree) if "role" in p.noun.classes and not p.is_plural]
        if re.search(r"\b(she|her)\b", english.sentence(tree), re.IGNORECASE):
            assert not hidden, english.sentence(tree)
            seen += 1
    assert seen > 300
