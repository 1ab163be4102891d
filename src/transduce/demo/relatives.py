"""Relative clauses: about who did it, what it was done to, whom it was done for, where, and whose something is."""

from typing import TypeGuard

from transduce.demo import times
from transduce.demo.clauses import clause
from transduce.demo.nominals import hides_sex, noun_phrase, person
from transduce.demo.tree import (
    SHE,
    THE,
    THIS,
    A,
    Clause,
    Determiner,
    Nominal,
    NounPhrase,
    Place,
    Predicate,
    RelativePronoun,
    Tense,
)
from transduce.demo.world import World

_WHOSE = {"m": "dessen", "n": "dessen", "f": "deren", "p": "deren"}
_LIVED_IN = ("live", "work", "stay", "wait")
_HAD = ("vehicle", "pet", "kin", "device", "coat", "hat", "jacket", "suitcase")


def takes_relative(tree: Nominal | None) -> TypeGuard[NounPhrase]:
    """Return whether a relative clause can be about this nominal."""
    return (
        isinstance(tree, NounPhrase)
        and tree.determiner in (THE, A, THIS)
        and tree.owner is None
        and tree.relative is None
        and tree.noun.classes.isdisjoint({"mass", "sky.one", "unit", "sense"})
        and not tree.noun.key.endswith(".f")
    )


def with_relative(world: World, tree: NounPhrase, *, main: Clause) -> NounPhrase:
    """Return the phrase with a relative clause, or as it was if chance finds none that fits the main clause."""
    relative = _relative(world, tree)
    if relative is None or relative.verb is main.verb or (relative.subject is SHE and hides_sex(main.subject)):
        return tree
    return tree._replace(relative=relative)


def _relative(world: World, antecedent: NounPhrase) -> Clause | None:
    classes = antecedent.noun.classes
    pronoun = RelativePronoun(antecedent.agreement, "person" in classes)
    draw = world.chance.below(100)
    if "person" in classes:
        if draw < 45:
            return _acting(world, antecedent, pronoun)
        if draw < 65:
            return _helped(world, antecedent, pronoun)
        if draw < 80:
            return _whose(world, antecedent)
    elif antecedent.noun.location is not None and not classes.isdisjoint({"building", "town", "home"}) and draw < 45:
        return _lived_in(world, antecedent, pronoun)
    elif draw < 20:
        return _acting(world, antecedent, pronoun)
    if draw > 88:
        return _thought_of(world, antecedent, pronoun)
    return _done_to(world, antecedent, pronoun)


def _acting(world: World, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause | None:
    verbs = world.index.done_by[antecedent.noun.key]
    if not verbs:
        return None
    verb = world.chance.one(verbs)
    tree = clause(world, verb, actor=pronoun, timing=times.told(world, verb))
    return tree._replace(manner=None)


def _done_to(world: World, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause | None:
    verbs = [
        verb for verb in world.index.done_to[antecedent.noun.key] if "plural" not in verb.flags or antecedent.is_plural
    ]
    if not verbs:
        return None
    verb = world.chance.one(verbs)
    timing = times.told(world, verb)
    tree = Clause(_somebody_else(world, antecedent), verb, timing.tense, time=timing.time, accusative=pronoun)
    if verb.datives:
        return tree._replace(dative=noun_phrase(world, world.noun("kin"), is_simple=True, is_plural=False))
    return tree


def _helped(world: World, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause:
    verbs = [verb for verb in world.index.deeds if verb.datives and not verb.accusatives]
    verb = world.chance.one(verbs)
    timing = times.told(world, verb)
    return Clause(_somebody_else(world, antecedent), verb, timing.tense, time=timing.time, dative=pronoun)


def _thought_of(world: World, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause | None:
    verbs = [
        verb
        for verb in world.index.actions
        if verb.preposition is not None and not antecedent.noun.classes.isdisjoint(verb.targets)
    ]
    if not verbs:
        return None
    verb = world.chance.one(verbs)
    timing = times.told(world, verb)
    assert verb.preposition is not None, "verbs without one are left out"
    return Clause(
        _somebody_else(world, antecedent),
        verb,
        timing.tense,
        time=timing.time,
        oblique=Place(verb.preposition, pronoun),
    )


def _whose(world: World, antecedent: NounPhrase) -> Clause | None:
    noun = world.noun(*_HAD)
    fitting = world.lexicon.fitting[noun.key]
    if not fitting or noun.english == antecedent.noun.english:
        return None
    whose = Determiner("whose", "whose", _WHOSE[antecedent.agreement], "")
    tense: Tense = world.chance.one(("present", "past"))
    had = NounPhrase(noun, whose)
    return Clause(had, world.lexicon.verbs["be"], tense, predicate=Predicate(world.chance.one(fitting)))


def _lived_in(world: World, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause:
    verb = world.lexicon.verbs[world.chance.one(_LIVED_IN)]
    assert antecedent.noun.location is not None, "only places are lived in"
    tense: Tense = world.chance.one(("present", "past"))
    place = Place(antecedent.noun.location, pronoun)
    return Clause(_somebody_else(world, antecedent), verb, tense, place=place)


def _somebody_else(world: World, antecedent: NounPhrase) -> Nominal:
    """Return another person, never "she" beside somebody whom "she" could mean."""
    while True:
        actor = person(world)
        if isinstance(actor, NounPhrase):
            if "role" in actor.noun.classes or actor.noun.english == antecedent.noun.english:
                continue
        elif actor is SHE and hides_sex(antecedent):
            continue
        return actor
