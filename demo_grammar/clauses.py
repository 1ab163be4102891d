"""Clauses that make sense: a verb with a subject, objects, place and manner that fit it."""

from demo_grammar import times
from demo_grammar.lexicon import Noun, Preposition, Verb
from demo_grammar.nominals import definite, different_noun, location, noun_phrase, other_person, settle_pronoun, subject
from demo_grammar.sampler import WordSampler
from demo_grammar.tree import (
    ALL,
    BARE,
    THE,
    THE_BARE,
    Clause,
    Determiner,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
)

BY = Preposition("by", "von", "dative")
_IN = Preposition("in", "in", "dative")
_TO = Preposition("to", "nach", "dative")
_TO_COUNTRY = Preposition("to", "in", "accusative")
_OVER = Preposition("over", "über", "accusative")
_THE_IN_GERMAN = Determiner("", "", "d", "definite")  # to Turkey: in die Türkei


def clause(
    sampler: WordSampler, verb: Verb, *, actor: Nominal | None = None, timing: times.Timing | None = None
) -> Clause:
    """Return a clause with `verb`; subject, timing, objects and place are drawn to fit unless given."""
    if actor is None:
        actor = subject(sampler, verb.subjects)
    if timing is None:
        timing = times.timing(sampler, verb, actor)
    if timing.negation:  # "all do not" and "a man does not" are ambiguous
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
    return _with_circumstances(sampler, _with_objects(sampler, tree))


def _with_objects(sampler: WordSampler, tree: Clause) -> Clause:
    verb = tree.verb
    if verb.datives:
        dative = other_person(sampler, tree.subject, verb.datives, is_simple=bool(tree.negation))
        tree = tree._replace(dative=definite(dative) if tree.negation else dative)
    if verb.preposition is not None:
        target = _object(sampler, tree, verb.targets)
        tree = tree._replace(
            oblique=PrepositionalPhrase(verb.preposition, definite(target) if tree.negation else target)
        )
    if verb.accusatives:
        return _with_accusative(sampler, tree)
    if verb.key == "play.music":
        return tree._replace(accusative=NounPhrase(sampler.noun("instrument"), THE_BARE))
    return tree


def _with_accusative(sampler: WordSampler, tree: Clause) -> Clause:
    """Add the direct object; its possessive ("her car") may state the sex of the subject."""
    actor, pronoun = tree.subject, None
    if tree.dative is None and sampler.chance.holds(0.5):
        actor, pronoun = settle_pronoun(sampler, tree.subject)
    if pronoun is not None and (not pronoun.possessive.german or pronoun.english == "it"):
        pronoun = None
    accusative = _object(sampler, tree, tree.verb.accusatives, owner=pronoun)
    if pronoun is not None and isinstance(accusative, NounPhrase) and accusative.determiner is pronoun.possessive:
        return tree._replace(subject=actor, accusative=accusative)
    return tree._replace(accusative=accusative)


def _object(sampler: WordSampler, tree: Clause, classes: tuple[str, ...], *, owner: Pronoun | None = None) -> Nominal:
    noun = different_noun(sampler, tree.subject, classes)
    is_simple = bool(tree.negation)
    if "person" in noun.classes:
        people = tuple(name for name in classes if name in noun.classes)
        return other_person(sampler, tree.subject, people, is_simple=is_simple)
    if "generic" in tree.verb.flags and noun.german_plural:
        return NounPhrase(noun, BARE, is_plural=True)
    is_plural = True if "plural" in tree.verb.flags else None
    return noun_phrase(sampler, noun, owner=owner, is_simple=is_simple, is_plural=is_plural)


def _with_circumstances(sampler: WordSampler, tree: Clause) -> Clause:
    verb, chance = tree.verb, sampler.chance
    place: PrepositionalPhrase | None = None
    if verb.places:
        place = place_of(sampler, verb.places)
    elif verb.goals:
        place = destination(sampler, verb.goals)
    elif verb.put:
        place = _onto(sampler.noun(*verb.put))
    elif verb.over and chance.holds(0.6):
        place = PrepositionalPhrase(_OVER, NounPhrase(sampler.noun(*verb.over)))
    elif verb.possible_places and not tree.negation and chance.holds(0.22):
        place = place_of(sampler, verb.possible_places)
    is_plain = not tree.negation and tree.modal is None and tree.frequency is None
    is_plain = is_plain and (place is None or not verb.possible_places)
    if verb.manners and is_plain and chance.holds(0.25):
        tree = tree._replace(manner=sampler.word("manner", chance.one(verb.manners)))
    return tree._replace(place=place)


def place_of(sampler: WordSampler, classes: tuple[str, ...]) -> PrepositionalPhrase:
    """Return a place of one of the classes: in the garden."""
    kind = sampler.chance.one(classes)
    if kind.startswith("@"):
        return _named_place(sampler, kind[1:], moving=False)
    return location(sampler, sampler.chance.one([noun for noun in sampler.nouns(kind) if noun.location is not None]))


def destination(sampler: WordSampler, classes: tuple[str, ...]) -> PrepositionalPhrase:
    """Return a destination of one of the classes: to the station."""
    kind = sampler.chance.one(classes)
    if kind.startswith("@"):
        return _named_place(sampler, kind[1:], moving=True)
    goals = [noun for noun in sampler.nouns(kind) if noun.goal is not None]
    return location(sampler, sampler.chance.one(goals), moving=True)


def _onto(noun: Noun) -> PrepositionalPhrase:
    assert noun.location is not None, "a noun of put= has a location"
    return PrepositionalPhrase(noun.location._replace(case="accusative"), NounPhrase(noun))


def _named_place(sampler: WordSampler, kind: str, *, moving: bool) -> PrepositionalPhrase:
    word = sampler.word(kind)
    if not word.gender:
        return PrepositionalPhrase(
            _TO if moving else _IN, Name(word.english, word.german, is_plural=False, is_female=False)
        )
    noun = Noun(word.key, word.english, "", word.german, "f", "", word.german, word.german, frozenset(), (), None, None)
    return PrepositionalPhrase(_TO_COUNTRY if moving else _IN, NounPhrase(noun, _THE_IN_GERMAN))
