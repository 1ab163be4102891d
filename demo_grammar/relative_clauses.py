"""Relative clauses: the pronoun is the subject, an object, a place, or "whose"."""

from typing import TypeGuard

from demo_grammar import times
from demo_grammar.clauses import clause
from demo_grammar.nominals import noun_phrase, person, sex_is_unstated
from demo_grammar.sampler import WordSampler
from demo_grammar.tree import (
    SHE,
    THE,
    THIS,
    A,
    Clause,
    Determiner,
    Nominal,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    RelativePronoun,
    Tense,
)

_WHOSE = {"m": "dessen", "n": "dessen", "f": "deren", "p": "deren"}
_VERBS_OF_PLACE = ("live", "work", "stay", "wait")
_POSSESSIONS = ("vehicle", "pet", "kin", "device", "coat", "hat", "jacket", "suitcase")


def takes_relative(tree: Nominal | None) -> TypeGuard[NounPhrase]:
    """Return whether the nominal can have a relative clause."""
    return (
        isinstance(tree, NounPhrase)
        and tree.determiner in (THE, A, THIS)
        and tree.owner is None
        and tree.relative is None
        and tree.noun.classes.isdisjoint({"mass", "sky.one", "unit", "sense"})
        and not tree.noun.key.endswith(".f")
    )


def with_relative(sampler: WordSampler, tree: NounPhrase, *, main: Clause) -> NounPhrase:
    """Return the phrase with a relative clause, or unchanged if the one drawn does not fit the main clause."""
    relative = _relative(sampler, tree)
    if relative is None or relative.verb is main.verb or (relative.subject is SHE and sex_is_unstated(main.subject)):
        return tree
    return tree._replace(relative=relative)


def _relative(sampler: WordSampler, antecedent: NounPhrase) -> Clause | None:
    classes = antecedent.noun.classes
    pronoun = RelativePronoun(antecedent.agreement, "person" in classes)
    draw = sampler.chance.below(100)
    if "person" in classes:
        if draw < 45:
            return _with_subject_pronoun(sampler, antecedent, pronoun)
        if draw < 65:
            return _with_dative_pronoun(sampler, antecedent, pronoun)
        if draw < 80:
            return _with_whose(sampler, antecedent)
    elif antecedent.noun.location is not None and not classes.isdisjoint({"building", "town", "home"}) and draw < 45:
        return _with_place_pronoun(sampler, antecedent, pronoun)
    elif draw < 20:
        return _with_subject_pronoun(sampler, antecedent, pronoun)
    if draw > 88:
        return _with_oblique_pronoun(sampler, antecedent, pronoun)
    return _with_accusative_pronoun(sampler, antecedent, pronoun)


def _with_subject_pronoun(sampler: WordSampler, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause | None:
    verbs = sampler.index.done_by[antecedent.noun.key]
    if not verbs:
        return None
    verb = sampler.chance.one(verbs)
    tree = clause(sampler, verb, actor=pronoun, timing=times.background_timing(sampler, verb))
    return tree._replace(manner=None)


def _with_accusative_pronoun(sampler: WordSampler, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause | None:
    verbs = [
        verb
        for verb in sampler.index.done_to[antecedent.noun.key]
        if "plural" not in verb.flags or antecedent.is_plural
    ]
    if not verbs:
        return None
    verb = sampler.chance.one(verbs)
    timing = times.background_timing(sampler, verb)
    tree = Clause(_other_person(sampler, antecedent), verb, timing.tense, time=timing.time, accusative=pronoun)
    if verb.datives:
        return tree._replace(dative=noun_phrase(sampler, sampler.noun("kin"), is_simple=True, is_plural=False))
    return tree


def _with_dative_pronoun(sampler: WordSampler, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause:
    verbs = [verb for verb in sampler.index.deeds if verb.datives and not verb.accusatives]
    verb = sampler.chance.one(verbs)
    timing = times.background_timing(sampler, verb)
    return Clause(_other_person(sampler, antecedent), verb, timing.tense, time=timing.time, dative=pronoun)


def _with_oblique_pronoun(sampler: WordSampler, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause | None:
    verbs = [
        verb
        for verb in sampler.index.actions
        if verb.preposition is not None and not antecedent.noun.classes.isdisjoint(verb.targets)
    ]
    if not verbs:
        return None
    verb = sampler.chance.one(verbs)
    timing = times.background_timing(sampler, verb)
    assert verb.preposition is not None, "the verbs were selected by their preposition"
    return Clause(
        _other_person(sampler, antecedent),
        verb,
        timing.tense,
        time=timing.time,
        oblique=PrepositionalPhrase(verb.preposition, pronoun),
    )


def _with_whose(sampler: WordSampler, antecedent: NounPhrase) -> Clause | None:
    noun = sampler.noun(*_POSSESSIONS)
    fitting = sampler.lexicon.fitting[noun.key]
    if not fitting or noun.english == antecedent.noun.english:
        return None
    whose = Determiner("whose", "whose", _WHOSE[antecedent.agreement], "")
    tense: Tense = sampler.chance.one(("present", "past"))
    owned = NounPhrase(noun, whose)
    return Clause(owned, sampler.lexicon.verbs["be"], tense, predicate=Predicate(sampler.chance.one(fitting)))


def _with_place_pronoun(sampler: WordSampler, antecedent: NounPhrase, pronoun: RelativePronoun) -> Clause:
    verb = sampler.lexicon.verbs[sampler.chance.one(_VERBS_OF_PLACE)]
    assert antecedent.noun.location is not None, "the caller selected a place"
    tense: Tense = sampler.chance.one(("present", "past"))
    place = PrepositionalPhrase(antecedent.noun.location, pronoun)
    return Clause(_other_person(sampler, antecedent), verb, tense, place=place)


def _other_person(sampler: WordSampler, antecedent: NounPhrase) -> Nominal:
    """Return another person; not "she" if "she" could refer to the antecedent."""
    while True:
        actor = person(sampler)
        if isinstance(actor, NounPhrase):
            if "role" in actor.noun.classes or actor.noun.english == antecedent.noun.english:
                continue
        elif actor is SHE and sex_is_unstated(antecedent):
            continue
        return actor
