"""Clauses that make sense: a verb, somebody who can do it, and what it can be done to, where and how."""

from transduce.demo import times
from transduce.demo.lexicon import Noun, Preposition, Verb
from transduce.demo.nominals import definite, different_noun, location, noun_phrase, other_person, referred, subject
from transduce.demo.tree import (
    ALL,
    BARE,
    THE,
    THE_BARE,
    Clause,
    Determiner,
    Name,
    Nominal,
    NounPhrase,
    Place,
    Pronoun,
)
from transduce.demo.world import World

BY = Preposition("by", "von", "dative")
_IN = Preposition("in", "in", "dative")
_TO = Preposition("to", "nach", "dative")
_TO_COUNTRY = Preposition("to", "in", "accusative")
_OVER = Preposition("over", "über", "accusative")
_THE_IN_GERMAN = Determiner("", "", "d", "definite")  # to Turkey: in die Türkei


def clause(world: World, verb: Verb, *, actor: Nominal | None = None, timing: times.Timing | None = None) -> Clause:
    """Return a clause with `verb`, everything not given chosen to fit."""
    if actor is None:
        actor = subject(world, verb.subjects)
    if timing is None:
        timing = times.timing(world, verb, actor)
    if timing.negation:  # "all do not" and "one does not" would leave open how many do
        actor = definite(actor)
        if isinstance(actor, NounPhrase) and actor.determiner is ALL:
            actor = actor._replace(determiner=THE)
    tree = Clause(
        actor,
        verb,
        timing.tense,
        timing.modal,
        negation=timing.negation,
        time=timing.time,
        frequency=timing.frequency,
    )
    return _with_circumstances(world, _with_objects(world, tree))


def _with_objects(world: World, tree: Clause) -> Clause:
    verb = tree.verb
    if verb.datives:
        dative = other_person(world, tree.subject, verb.datives, is_simple=bool(tree.negation))
        tree = tree._replace(dative=definite(dative) if tree.negation else dative)
    if verb.preposition is not None:
        target = _object(world, tree, verb.targets)
        tree = tree._replace(oblique=Place(verb.preposition, definite(target) if tree.negation else target))
    if verb.accusatives:
        return _with_accusative(world, tree)
    if verb.key == "play.music":
        return tree._replace(accusative=NounPhrase(world.noun("instrument"), THE_BARE))
    return tree


def _with_accusative(world: World, tree: Clause) -> Clause:
    """Add the direct object; one of the actor's own tells whether the actor is he or she."""
    actor, pronoun = tree.subject, None
    if tree.dative is None and world.chance.holds(0.5):
        actor, pronoun = referred(world, tree.subject)
    if pronoun is not None and (not pronoun.possessive.german or pronoun.english == "it"):
        pronoun = None
    accusative = _object(world, tree, tree.verb.accusatives, owner=pronoun)
    if pronoun is not None and isinstance(accusative, NounPhrase) and accusative.determiner is pronoun.possessive:
        return tree._replace(subject=actor, accusative=accusative)
    return tree._replace(accusative=accusative)


def _object(world: World, tree: Clause, classes: tuple[str, ...], *, owner: Pronoun | None = None) -> Nominal:
    noun = different_noun(world, tree.subject, classes)
    is_simple = bool(tree.negation)
    if "person" in noun.classes:
        people = tuple(name for name in classes if name in noun.classes)
        return other_person(world, tree.subject, people, is_simple=is_simple)
    if "generic" in tree.verb.flags and noun.german_plural:
        return NounPhrase(noun, BARE, is_plural=True)
    is_plural = True if "plural" in tree.verb.flags else None
    return noun_phrase(world, noun, owner=owner, is_simple=is_simple, is_plural=is_plural)


def _with_circumstances(world: World, tree: Clause) -> Clause:
    verb, chance = tree.verb, world.chance
    place: Place | None = None
    if verb.places:
        place = where(world, verb.places)
    elif verb.goals:
        place = whither(world, verb.goals)
    elif verb.put:
        place = _onto(world.noun(*verb.put))
    elif verb.over and chance.holds(0.6):
        place = Place(_OVER, NounPhrase(world.noun(*verb.over)))
    elif verb.possible_places and not tree.negation and chance.holds(0.22):
        place = where(world, verb.possible_places)
    is_plain = not tree.negation and tree.modal is None and tree.frequency is None
    is_plain = is_plain and (place is None or not verb.possible_places)
    if verb.manners and is_plain and chance.holds(0.25):
        tree = tree._replace(manner=world.word("manner", chance.one(verb.manners)))
    return tree._replace(place=place)


def where(world: World, classes: tuple[str, ...]) -> Place:
    """Return a place of one of the classes."""
    kind = world.chance.one(classes)
    if kind.startswith("@"):
        return _named_place(world, kind[1:], moving=False)
    return location(world, world.chance.one([noun for noun in world.nouns(kind) if noun.location is not None]))


def whither(world: World, classes: tuple[str, ...]) -> Place:
    """Return a goal of one of the classes."""
    kind = world.chance.one(classes)
    if kind.startswith("@"):
        return _named_place(world, kind[1:], moving=True)
    goals = [noun for noun in world.nouns(kind) if noun.goal is not None]
    return location(world, world.chance.one(goals), moving=True)


def _onto(noun: Noun) -> Place:
    assert noun.location is not None, "what something is put on or into has a location"
    return Place(noun.location._replace(case="accusative"), NounPhrase(noun))


def _named_place(world: World, kind: str, *, moving: bool) -> Place:
    word = world.word(kind)
    if not word.gender:
        return Place(_TO if moving else _IN, Name(word.english, word.german, is_plural=False, is_female=False))
    noun = Noun(word.key, word.english, "", word.german, "f", "", word.german, word.german, frozenset(), (), None, None)
    return Place(_TO_COUNTRY if moving else _IN, NounPhrase(noun, _THE_IN_GERMAN))
