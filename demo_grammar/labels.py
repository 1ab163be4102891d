"""Labels of a sentence: its verbs, nouns, names and pronouns, what the tree knows about them, and where they stand.

Each part of a copy of the tree gets a mark of its own (`marks`). Both languages render the copy, and the words with a
mark are the words of that part.
"""

from typing import Literal, TypeAlias

from demo_grammar import english, german
from demo_grammar.german import person_of
from demo_grammar.marks import mark, positions, unmarked
from demo_grammar.tree import (
    Clause,
    ClueClause,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
)
from transduce.demo.corpus import Constituent, Role

Number: TypeAlias = Literal["singular", "plural"]
Gender: TypeAlias = Literal["masculine", "feminine", "neuter"]

_GENDERS: dict[str, Gender] = {"m": "masculine", "f": "feminine", "n": "neuter"}
_PRONOUN_GENDERS: dict[str, Gender] = {"er": "masculine", "sie": "feminine", "es": "neuter"}
_FIRST_PLURAL = 3  # persons are ich, du, er, wir, ihr, sie


def constituents(tree: Sentence) -> tuple[Constituent, ...]:
    """Return the labelled parts of a sentence, clause by clause; parts that neither language says are left out."""
    labeller = _Labeller()
    copy = labeller.sentence(tree)
    source, target = english.sentence(copy), german.sentence(copy)
    assert unmarked(source) == english.sentence(tree), "marks must not change the English sentence"
    assert unmarked(target) == german.sentence(tree), "marks must not change the German sentence"
    found = (
        part._replace(english=positions(source, mark(number)), german=positions(target, mark(number)))
        for number, part in enumerate(labeller.parts)
    )
    return tuple(part for part in found if part.english or part.german)


class _Labeller:
    """Copies a tree, gives each part a mark, and keeps the part's labels in the order of the marks."""

    def __init__(self) -> None:
        self.parts: list[Constituent] = []
        self._clauses = 0

    def sentence(self, tree: Sentence) -> Sentence:
        """Return a copy of the sentence with marks."""
        is_finite = tree.kind != "command"
        tree = tree._replace(main=self._clause(tree.main, is_finite=is_finite))
        if tree.subordinate is not None:
            tree = tree._replace(subordinate=self._clause(tree.subordinate))
        if tree.joined is not None:
            tree = tree._replace(joined=self._clause(tree.joined))
        if tree.addressee is not None:
            tree = tree._replace(addressee=self._name(tree.addressee, "addressee", 0))
        return tree

    def _mark(self, part: Constituent) -> str:
        self.parts.append(part)
        return mark(len(self.parts) - 1)

    def _clause(self, tree: Clause | ClueClause, *, is_finite: bool = True) -> Clause | ClueClause:
        clause = self._clauses
        self._clauses += 1
        verb = Constituent(clause, "verb", (), ())
        if is_finite:
            verb = verb._replace(number=_number(tree.subject))
        if isinstance(tree, ClueClause):
            symbol = self._mark(verb._replace(tense="past" if tree.is_past else "present"))
            return tree._replace(subject=self._nominal(tree.subject, "subject", clause), mark=symbol)
        tree = tree._replace(mark=self._mark(verb._replace(tense=tree.tense if is_finite else None)))
        return self._with_parts(tree, clause)

    def _with_parts(self, tree: Clause, clause: int) -> Clause:
        tree = tree._replace(subject=self._nominal(tree.subject, "subject", clause))
        if tree.accusative is not None:
            tree = tree._replace(accusative=self._nominal(tree.accusative, "accusative", clause))
        if tree.dative is not None:
            tree = tree._replace(dative=self._nominal(tree.dative, "dative", clause))
        if tree.oblique is not None:
            tree = tree._replace(oblique=self._prepositional(tree.oblique, "oblique", clause))
        if isinstance(tree.place, PrepositionalPhrase):
            tree = tree._replace(place=self._prepositional(tree.place, "place", clause))
        if tree.predicate is not None:
            predicate = tree.predicate
            if predicate.nominal is not None:
                predicate = predicate._replace(nominal=self._noun_phrase(predicate.nominal, "predicate", clause))
            if predicate.than is not None:
                predicate = predicate._replace(than=self._nominal(predicate.than, "comparison", clause))
            tree = tree._replace(predicate=predicate)
        if tree.content is not None:
            is_finite = tree.content.conjunction in ("that", "whether")
            inner = self._clause(tree.content.clause, is_finite=is_finite)
            tree = tree._replace(content=tree.content._replace(clause=inner))
        return tree

    def _prepositional(self, tree: PrepositionalPhrase, role: Role, clause: int) -> PrepositionalPhrase:
        return tree._replace(nominal=self._nominal(tree.nominal, role, clause))

    def _nominal(self, tree: Nominal, role: Role, clause: int) -> Nominal:
        if isinstance(tree, NounPhrase):
            return self._noun_phrase(tree, role, clause)
        if isinstance(tree, Name):
            return self._name(tree, role, clause)
        return tree._replace(mark=self._mark(Constituent(clause, role, (), (), _number(tree), _gender(tree))))

    def _name(self, tree: Name, role: Role, clause: int) -> Name:
        gender = None if role == "place" else _gender(tree)  # the grammar knows no gender of cities
        return tree._replace(mark=self._mark(Constituent(clause, role, (), (), _number(tree), gender)))

    def _noun_phrase(self, tree: NounPhrase, role: Role, clause: int) -> NounPhrase:
        tree = tree._replace(mark=self._mark(Constituent(clause, role, (), (), _number(tree), _gender(tree))))
        if tree.owner is not None:
            tree = tree._replace(owner=self._noun_phrase(tree.owner, "owner", clause))
        if tree.relative is not None:
            tree = tree._replace(relative=self._clause(tree.relative))
        return tree


def _number(tree: Nominal) -> Number:
    return "plural" if person_of(tree) >= _FIRST_PLURAL else "singular"


def _gender(tree: Nominal) -> Gender | None:
    if isinstance(tree, NounPhrase):
        return _GENDERS[tree.noun.gender]
    if isinstance(tree, RelativePronoun):
        return _GENDERS.get(tree.agreement)
    if isinstance(tree, Pronoun):
        return _PRONOUN_GENDERS.get(tree.german[0]) if _number(tree) == "singular" else None
    if tree.is_plural:
        return None
    return "feminine" if tree.is_female else "masculine"
