"""Two clauses that hang together: because, although, when, if, while, before, after, but, and; and deeper nests.

What comes second takes up the first by pronouns: the same actor, and often the same thing, so that "it" is er, sie
or es by the gender of a noun further up.
"""

from typing import NamedTuple

from transduce.demo.clauses import clause
from transduce.demo.lexicon import Verb
from transduce.demo.nominals import person, plain_person, referred
from transduce.demo.sentences import add_relative, feeling, report
from transduce.demo.times import Timing
from transduce.demo.tree import (
    ES,
    THEY,
    Clause,
    Negation,
    Nominal,
    NounPhrase,
    Predicate,
    Pronoun,
    RelativePronoun,
    Sentence,
    Tense,
)
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
_WANTED = frozenset({"need", "like", "love", "have"})


def with_subordinate(world: World) -> Sentence:
    """Join a main clause and a subordinate one, either of them first."""
    chance = world.chance
    key = chance.one(tuple(_JOINS))
    join = _JOINS[key]
    conjunction = next(word for word in world.words("conjunction") if word.key == key)
    leads = join.may_lead and chance.holds(0.55)
    first_tense, second_tense = (join.subordinate, join.main) if leads else (join.main, join.subordinate)
    actor = plain_person(world) if key == "while" else _lasting(world, has_pronouns="present" not in join)
    verb = _deed(world, first_tense, flag="prog" if key == "while" else "")
    first = clause(world, verb, actor=actor, timing=Timing(first_tense))._replace(manner=None)
    if key == "while":
        verb = _deed(world, "past", flag="prog")
        second = clause(world, verb, actor=plain_person(world, other_than=actor), timing=Timing("past"))
    elif key in ("because", "although"):
        first, second = _reason(world, first, is_despite=key == "although")
    elif key in ("when.if", "when.once") and chance.holds(0.4):
        first, pronoun = _taken_up(world, first)
        second = feeling(world, pronoun, second_tense)
    else:
        first, second = _next_deed(world, first, second_tense, with_it=key in ("if", "before", "after"))
    main, subordinate = (second, first) if leads else (first, second)
    return Sentence("statement", main, conjunction=conjunction, subordinate=subordinate, subordinate_is_first=leads)


def _deed(world: World, tense: Tense, *, flag: str = "") -> Verb:
    while True:
        verb = world.chance.one(world.index.deeds)
        if (
            verb.scene
            and (not flag or flag in verb.flags)
            and (tense != "present" or verb.english.base != verb.english.past)
        ):
            return verb


def _lasting(world: World, *, has_pronouns: bool = True) -> Nominal:
    """Return somebody whom a pronoun can take up."""
    while True:
        found = person(world, with_pronouns=has_pronouns)
        if referred(world, found)[1] is not None:
            return found


def _taken_up(world: World, tree: Clause) -> tuple[Clause, Pronoun]:
    """Return the clause, its actor's sex now settled, and the pronoun for the actor."""
    actor, pronoun = referred(world, tree.subject)
    assert pronoun is not None, "_lasting has seen to it"
    return tree._replace(subject=actor), pronoun


def _next_deed(world: World, first: Clause, tense: Tense, *, with_it: bool = True) -> tuple[Clause, Clause]:
    """Return the clause and what its actor does next, with the same thing if there is one."""
    chance = world.chance
    thing = _thing(world, first) if with_it else None
    first, pronoun = _taken_up(world, first)
    if thing is not None and chance.holds(0.6):
        verbs = [verb for verb in _usable(world, first, tense) if verb.english.base != first.verb.english.base]
        if verbs:
            return first, Clause(pronoun, chance.one(verbs), tense, accusative=thing)
    verb = chance.one(world.index.scenes[first.verb.scene])
    if verb.english.base == first.verb.english.base or (tense == "present" and verb.english.base == verb.english.past):
        verb = _deed(world, tense)
    return first, clause(world, verb, actor=pronoun, timing=Timing(tense))._replace(manner=None)


def _usable(world: World, tree: Clause, tense: Tense) -> list[Verb]:
    """Return the deeds that can be done to the clause's object and need nothing else."""
    assert isinstance(tree.accusative, NounPhrase), "_thing has seen to it"
    return [
        verb
        for verb in world.index.done_to[tree.accusative.noun.key]
        if verb in world.index.deeds
        and verb.key not in ("see", "hear")
        and not verb.datives
        and verb.english.particle in ("", "for")
        and (tense != "present" or verb.english.base != verb.english.past)
    ]


def _reason(world: World, first: Clause, *, is_despite: bool) -> tuple[Clause, Clause]:
    """Return the clause and why, or despite what: the weather, a feeling, or something about its object."""
    chance = world.chance
    if is_despite and chance.holds(0.25):
        return first, Clause(ES, world.verb("weather"), "past")
    thing = _thing(world, first)
    if thing is not None and isinstance(first.accusative, NounPhrase):
        noun = first.accusative.noun
        shown = {adjective.scale for adjective in first.accusative.adjectives} | {"colour"}
        fitting = [adjective for adjective in world.lexicon.fitting[noun.key] if adjective.scale not in shown]
        if fitting and chance.holds(0.45):
            said = Predicate(chance.one(fitting))
            return first, Clause(thing, world.lexicon.verbs["be"], "past", predicate=said)
        wanted = [verb for verb in world.index.done_to[noun.key] if verb.key in _WANTED and verb is not first.verb]
        if wanted and chance.holds(0.6):
            first, pronoun = _taken_up(world, first)
            negation: Negation = "not" if is_despite else ""
            return first, Clause(pronoun, chance.one(wanted), "past", negation=negation, accusative=thing)
    first, pronoun = _taken_up(world, first)
    return first, feeling(world, pronoun, "past")


def _thing(world: World, tree: Clause) -> Pronoun | None:
    """Return the pronoun for the clause's object, if that is no person and nothing general."""
    phrase = tree.accusative
    if not isinstance(phrase, NounPhrase) or not phrase.noun.classes.isdisjoint({"person", "language", "game"}):
        return None
    if tree.verb.key == "play.music" or tree.verb.put:  # it: the vase, or the table on which it was put?
        return None
    return THEY if phrase.is_plural else referred(world, phrase)[1]


def joined(world: World) -> Sentence:
    """Join two main clauses with one subject: he bought the bread and ate it, or but did not eat it."""
    chance = world.chance
    first = clause(world, _deed(world, "past"), actor=_lasting(world), timing=Timing("past"))._replace(manner=None)
    if _thing(world, first) is not None and chance.holds(0.5):
        first, second = _next_deed(world, first, "past")
        if isinstance(second.accusative, Pronoun):
            return Sentence("statement", first, joined=second._replace(negation="not"), joint="but")
        return Sentence("statement", first, joined=second, joint="and")
    first, second = _next_deed(world, first._replace(subject=_masculine(first.subject)), "past")
    return Sentence("statement", first, joined=second, joint="and", joined_keeps_subject=False)


def _masculine(tree: Nominal) -> Nominal:
    """Settle that a teacher is Lehrer where no pronoun will follow that could tell."""
    if isinstance(tree, NounPhrase):
        return tree._replace(noun=tree.noun._replace(classes=tree.noun.classes - {"role"}))
    return tree


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
    subject, accusative = tree.subject, tree.accusative
    if isinstance(subject, NounPhrase) and isinstance(subject.relative, Clause):
        subject = subject._replace(relative=_continued(world, subject.relative))
    if isinstance(accusative, NounPhrase) and isinstance(accusative.relative, Clause):
        accusative = accusative._replace(relative=_continued(world, accusative.relative))
    return tree._replace(subject=subject, accusative=accusative)


def _continued(world: World, relative: Clause) -> Clause:
    """Go on from the end of a relative clause; one in its middle would be hard to follow."""
    return add_relative(world, relative) if isinstance(relative.subject, RelativePronoun) else relative
