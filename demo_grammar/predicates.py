"""Sentences about properties: qualities, comparisons, professions, ages, prices and dates."""

from demo_grammar import times
from demo_grammar.german_verbs import WANT_TO
from demo_grammar.lexicon import Adjective, Noun
from demo_grammar.nominals import name, noun_phrase, number, settle_pronoun
from demo_grammar.numerals import english_number, german_number
from demo_grammar.sampler import WordSampler
from demo_grammar.tree import (
    A_BARE,
    HE,
    SHE,
    THE,
    THIS,
    A,
    Clause,
    Name,
    Nominal,
    NounPhrase,
    Predicate,
    Sentence,
    Tense,
)

_PRAISE = ("good", "famous", "young")
_TOO_WIDE = frozenset({"sense", "person", "goods", "thing", "adult", "animal", "nature", "item", "he", "she", "role"})
_TENSES: tuple[Tense, ...] = ("present", "present", "past")


def quality(sampler: WordSampler) -> Sentence:
    """Return a statement of one quality, or of two joined by "and" or "but": the ferry is fast, and it is old."""
    chance = sampler.chance
    noun = chance.one(sampler.index.described)
    fitting = sampler.lexicon.fitting[noun.key]
    if "idea" not in noun.classes:  # "the wrong train" makes sense, "the train is wrong" does not
        fitting = tuple(adjective for adjective in fitting if adjective.scale != "truth") or fitting
    adjective, other = chance.one(fitting), chance.one(fitting)
    phrase = _definite_phrase(sampler, noun)
    tense = chance.one(_TENSES)
    main = _copula_clause(sampler, phrase, adjective, tense)
    subject, pronoun = settle_pronoun(sampler, phrase)
    if other.scale == adjective.scale or pronoun is None or chance.holds(0.4):
        return Sentence("statement", main._replace(negation="not") if chance.holds(0.25) else main)
    second = _copula_clause(sampler, pronoun, other, tense)
    return Sentence("statement", main._replace(subject=subject), joined=second, joint=chance.one(("but", "and")))


def _copula_clause(sampler: WordSampler, subject: Nominal, adjective: Adjective, tense: Tense) -> Clause:
    return Clause(subject, sampler.lexicon.verbs["be"], tense, predicate=Predicate(adjective))


def _definite_phrase(sampler: WordSampler, noun: Noun) -> NounPhrase:
    """Return a definite phrase without adjectives."""
    phrase = noun_phrase(sampler, noun, is_simple=True)._replace(adjectives=())
    if phrase.determiner.is_definite and "mass" not in noun.classes:
        return phrase
    return phrase._replace(determiner=sampler.chance.one((THE, THIS)))


def comparison(sampler: WordSampler) -> Sentence:
    """Return a comparison of two things: one has more of a quality, or as much."""
    chance = sampler.chance
    while True:
        adjective = chance.one(tuple(sampler.lexicon.adjectives.values()))
        pool = sampler.nouns(*sorted(adjective.classes))
        first, second = chance.one(pool), chance.one(pool)
        is_alike = bool((first.classes & second.classes) - _TOO_WIDE) or "person" in first.classes & second.classes
        if adjective.english_comparative and first.english != second.english and is_alike:
            break
    subject = _definite_phrase(sampler, first)
    than = _definite_phrase(sampler, second)._replace(is_plural=False, owner=None)
    degree = "equal" if chance.holds(0.3) else "comparative"
    predicate = Predicate(adjective, "equal" if degree == "equal" else "comparative", than)
    return Sentence("statement", Clause(subject, sampler.lexicon.verbs["be"], predicate=predicate))


def profession(sampler: WordSampler) -> Sentence:
    """Return a statement about a profession; German has no article and states the sex: sie ist Ärztin."""
    chance = sampler.chance
    noun = sampler.noun("job")
    actor: Nominal = chance.one((HE, SHE)) if chance.holds(0.6) else name(sampler)
    is_female = actor.is_female if isinstance(actor, Name) else actor is SHE
    adjectives: tuple[Adjective, ...] = ()
    if chance.holds(0.35):
        adjectives = (sampler.lexicon.adjectives[chance.one(_PRAISE)],)
    shown = sampler.lexicon.nouns[noun.key + ".f"] if is_female else noun
    predicate = Predicate(nominal=NounPhrase(shown, A if adjectives else A_BARE, adjectives=adjectives))
    if chance.holds(0.6):
        negation = chance.holds(0.2)
        tree = Clause(actor, sampler.lexicon.verbs["be"], chance.one(_TENSES), predicate=predicate)
        return Sentence("statement", tree._replace(negation="not") if negation else tree)
    timing = chance.one((times.Timing("present", WANT_TO), times.Timing("future"), times.Timing("past")))
    tree = Clause(actor, sampler.lexicon.verbs["become"], timing.tense, timing.modal, predicate=predicate)
    return Sentence("statement", tree)


def measure(sampler: WordSampler) -> Sentence:
    """Return a statement of an age, a price or a date."""
    return sampler.chance.one((_age, _price, _day))(sampler)


def _age(sampler: WordSampler) -> Sentence:
    chance = sampler.chance
    actor: Nominal = name(sampler)
    youngest, oldest = 2, 99
    if chance.holds(0.6):
        kind, youngest, oldest = chance.one((("adult", 21, 99), ("young", 3, 20), ("pet", 2, 15)))
        actor = _definite_phrase(sampler, sampler.noun(kind))._replace(is_plural=False)
    years = chance.between(youngest, oldest)
    old = times.phrase(f"{english_number(years)} years old", f"{german_number(years)} Jahre alt")
    return Sentence("statement", Clause(actor, sampler.lexicon.verbs["be"], predicate=Predicate(phrase=old)))


def _price(sampler: WordSampler) -> Sentence:
    chance = sampler.chance
    euros = NounPhrase(sampler.lexicon.nouns["euro"], number(chance.between(2, 99)), is_plural=True)
    noun = sampler.noun("clothes", "item", "dish", "furniture")
    thing = noun_phrase(sampler, noun, is_simple=True, is_plural=False)
    adjectives = tuple(adjective for adjective in thing.adjectives if adjective.scale != "price")
    thing = thing._replace(determiner=chance.one((THE, THIS)), owner=None, adjectives=adjectives)
    return Sentence("statement", Clause(thing, sampler.lexicon.verbs["cost"], chance.one(_TENSES), accusative=euros))


def _day(sampler: WordSampler) -> Sentence:
    chance = sampler.chance
    event = NounPhrase(sampler.noun("event"))
    day = times.date(sampler) if chance.holds(0.7) else times.weekday(sampler)
    tree = Clause(event, sampler.lexicon.verbs["be"], chance.one(_TENSES), predicate=Predicate(phrase=day))
    return Sentence("statement", tree)
