"""Two clauses that hang together: because, although, when, if, while, before, after, but, and; and deeper nests."""

from typing import NamedTuple

from transduce.demo.clauses import clause
from transduce.demo.lexicon import Verb
from transduce.demo.nominals import person, plain_person, referred
from transduce.demo.sentences import add_relative, feeling, report
from transduce.demo.times import Timing
from transduce.demo.tree import ES, THEY, Clause, Nominal, NounPhrase, Predicate, Pronoun, Sentence, Tense
from transduce.demo.world import World


class _Join(NamedTuple):
    main: Tense
    subordinate: Tense
    may_lead: bool


_JOINS = {
    "because": _Join("past", "past", may_lead=False),
    "although": _Join("past", "past", may_lead=False),
    "when.once": _Join("past", "past", may_lead=True),
    "when.if": _Join("present", "present", may_lead=True),
    "if": _Join("future", "present", may_lead=True),
    "while": _Join("past", "past", may_lead=True),
    "before": _Join("past", "past", may_lead=True),
    "after": _Join("past", "pluperfect", may_lead=True),
}
_WANTED = ("need", "like", "love")


def with_subordinate(world: World) -> Sentence:
    """Join a main clause and a subordinate one, either of them first; the second takes up the first by pronouns."""
    chance = world.chance
    key = chance.one(tuple(_JOINS))
    join = _JOINS[key]
    conjunction = next(word for word in world.words("conjunction") if word.key == key)
    leads = join.may_lead and chance.holds(0.55)
    first_tense, second_tense = (join.subordinate, join.main) if leads else (join.main, join.subordinate)
    first = clause(world, _deed(world, first_tense), actor=_lasting(world), timing=Timing(first_tense))
    first = first._replace(manner=None)
    if key == "while":
        second = clause(world, _deed(world, "past"), actor=plain_person(world), timing=Timing("past"))
    elif key in ("because", "although"):
        first, second = _reason(world, first)
    else:
        actor, pronoun = _taken_up(world, first.subject)
        first = first._replace(subject=actor)
        second = clause(world, _deed(world, second_tense), actor=pronoun, timing=Timing(second_tense))
        if key in ("when.if", "if", "when.once") and second_tense != "future" and chance.holds(0.4):
            second = feeling(world, pronoun, second_tense)
    main, subordinate = (second, first) if leads else (first, second)
    return Sentence("statement", main, conjunction=conjunction, subordinate=subordinate, subordinate_is_first=leads)


def _deed(world: World, tense: Tense) -> Verb:
    while True:
        verb = world.chance.one(world.deeds)
        if tense != "present" or verb.english.base != verb.english.past:
            return verb


def _lasting(world: World) -> Nominal:
    """Return somebody whom a pronoun can take up."""
    while True:
        found = person(world)
        if referred(world, found)[1] is not None:
            return found


def _taken_up(world: World, tree: Nominal) -> tuple[Nominal, Pronoun]:
    actor, pronoun = referred(world, tree)
    assert pronoun is not None, "_lasting has seen to it"
    return actor, pronoun


def _reason(world: World, first: Clause) -> tuple[Clause, Clause]:
    """Return the clause and why, or despite what: the weather, a feeling, or something about its object."""
    chance = world.chance
    if chance.holds(0.15):
        return first, Clause(ES, world.verb("weather"), "past")
    thing = _thing(world, first.accusative)
    if thing is not None and chance.holds(0.4):
        assert isinstance(first.accusative, NounPhrase), "_thing has seen to it"
        fitting = world.lexicon.fitting[first.accusative.noun.key]
        if fitting:
            said = Predicate(chance.one(fitting))
            return first, Clause(thing, world.lexicon.verbs["be"], "past", predicate=said)
    actor, pronoun = _taken_up(world, first.subject)
    first = first._replace(subject=actor)
    if thing is not None and chance.holds(0.6):
        verb = world.lexicon.verbs[chance.one([key for key in _WANTED if key != first.verb.key])]
        return first, Clause(pronoun, verb, "past", accusative=thing)
    return first, feeling(world, pronoun, "past")


def _thing(world: World, tree: Nominal | None) -> Pronoun | None:
    """Return the pronoun for an object that is no person."""
    if not isinstance(tree, NounPhrase) or "person" in tree.noun.classes or not tree.determiner.english.strip("no"):
        return None
    return THEY if tree.is_plural else referred(world, tree)[1]


def joined(world: World) -> Sentence:
    """Join two main clauses with one subject: he opened the window and called the dog."""
    first = clause(world, world.chance.one(world.deeds), actor=_lasting(world), timing=Timing("past"))
    actor, pronoun = _taken_up(world, first.subject)
    second = clause(world, world.chance.one(world.deeds), actor=pronoun, timing=Timing("past"))
    contrasts = world.chance.holds(0.5)
    if contrasts:
        second = second._replace(negation="", tense="past", manner=None)
    return Sentence(
        "statement",
        first._replace(subject=actor),
        joined=second,
        joint="but" if contrasts else "and",
        joined_keeps_subject=contrasts,
    )


def nested(world: World) -> Sentence:
    """Put relative clauses into relative clauses and reports into reports, longer than anything else."""
    draw = world.chance.below(3)
    if draw == 0:
        return Sentence("statement", _deepened(world, report(world, depth=world.chance.between(1, 2))))
    tree = with_subordinate(world) if draw == 1 else joined(world)
    main, subordinate, second = (
        _deepened(world, part) if isinstance(part, Clause) else part
        for part in (tree.main, tree.subordinate, tree.joined)
    )
    assert main is not None, "a sentence has a main clause"
    return tree._replace(main=main, subordinate=subordinate, joined=second)


def _deepened(world: World, tree: Clause) -> Clause:
    """Return the clause with a relative clause, itself with another, and what it reports deepened too."""
    if tree.content is not None and isinstance(tree.content.clause, Clause):
        tree = tree._replace(content=tree.content._replace(clause=_deepened(world, tree.content.clause)))
    tree = add_relative(world, tree)
    if isinstance(tree.subject, NounPhrase) and isinstance(tree.subject.relative, Clause):
        inner = add_relative(world, tree.subject.relative)
        tree = tree._replace(subject=tree.subject._replace(relative=inner))
    if isinstance(tree.accusative, NounPhrase) and isinstance(tree.accusative.relative, Clause):
        inner = add_relative(world, tree.accusative.relative)
        tree = tree._replace(accusative=tree.accusative._replace(relative=inner))
    return tree
