"""What something is: qualities, comparisons, professions, ages, prices and days."""

from transduce.demo import times
from transduce.demo.german_verbs import WANT_TO
from transduce.demo.lexicon import Adjective, Noun
from transduce.demo.nominals import name, noun_phrase, number, referred
from transduce.demo.numerals import english_number, german_number
from transduce.demo.tree import (
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
from transduce.demo.world import World

_PRAISE = ("good", "famous", "young")
_TOO_WIDE = frozenset({"sense", "person", "goods", "thing", "adult", "animal", "nature", "item", "he", "she", "role"})
_TENSES: tuple[Tense, ...] = ("present", "present", "past")


def quality(world: World) -> Sentence:
    """Say that something is so, and perhaps that it is also otherwise: the pronoun has the gender of the noun."""
    chance = world.chance
    noun = chance.one(world.index.described)
    fitting = world.lexicon.fitting[noun.key]
    if "idea" not in noun.classes:  # the wrong train, but not: the train is wrong
        fitting = tuple(adjective for adjective in fitting if adjective.scale != "truth") or fitting
    adjective, other = chance.one(fitting), chance.one(fitting)
    phrase = _this(world, noun)
    tense = chance.one(_TENSES)
    main = _is(world, phrase, adjective, tense)
    subject, pronoun = referred(world, phrase)
    if other.scale == adjective.scale or pronoun is None or chance.holds(0.4):
        return Sentence("statement", main._replace(negation="not") if chance.holds(0.25) else main)
    second = _is(world, pronoun, other, tense)
    return Sentence("statement", main._replace(subject=subject), joined=second, joint=chance.one(("but", "and")))


def _is(world: World, subject: Nominal, adjective: Adjective, tense: Tense) -> Clause:
    return Clause(subject, world.lexicon.verbs["be"], tense, predicate=Predicate(adjective))


def _this(world: World, noun: Noun) -> NounPhrase:
    """Return a definite phrase without adjectives."""
    phrase = noun_phrase(world, noun, is_simple=True)._replace(adjectives=())
    if phrase.determiner.is_definite and "mass" not in noun.classes:
        return phrase
    return phrase._replace(determiner=world.chance.one((THE, THIS)))


def comparison(world: World) -> Sentence:
    """Say that one thing is more so than another, or as much."""
    chance = world.chance
    while True:
        adjective = chance.one(tuple(world.lexicon.adjectives.values()))
        pool = world.nouns(*sorted(adjective.classes))
        first, second = chance.one(pool), chance.one(pool)
        is_alike = bool((first.classes & second.classes) - _TOO_WIDE) or "person" in first.classes & second.classes
        if adjective.english_comparative and first.english != second.english and is_alike:
            break
    subject = _this(world, first)
    than = _this(world, second)._replace(is_plural=False, owner=None)
    degree = "equal" if chance.holds(0.3) else "comparative"
    predicate = Predicate(adjective, "equal" if degree == "equal" else "comparative", than)
    return Sentence("statement", Clause(subject, world.lexicon.verbs["be"], predicate=predicate))


def profession(world: World) -> Sentence:
    """Say that somebody is or wants to become something; German leaves out the article and tells the sex."""
    chance = world.chance
    noun = world.noun("job")
    actor: Nominal = chance.one((HE, SHE)) if chance.holds(0.6) else name(world)
    is_female = actor.is_female if isinstance(actor, Name) else actor is SHE
    adjectives: tuple[Adjective, ...] = ()
    if chance.holds(0.35):
        adjectives = (world.lexicon.adjectives[chance.one(_PRAISE)],)
    shown = world.lexicon.nouns[noun.key + ".f"] if is_female else noun
    said = Predicate(nominal=NounPhrase(shown, A if adjectives else A_BARE, adjectives=adjectives))
    if chance.holds(0.6):
        negation = chance.holds(0.2)
        tree = Clause(actor, world.lexicon.verbs["be"], chance.one(_TENSES), predicate=said)
        return Sentence("statement", tree._replace(negation="not") if negation else tree)
    timing = chance.one((times.Timing("present", WANT_TO), times.Timing("future"), times.Timing("past")))
    tree = Clause(actor, world.lexicon.verbs["become"], timing.tense, timing.modal, predicate=said)
    return Sentence("statement", tree)


def measure(world: World) -> Sentence:
    """Say how old somebody is, what something costs, or on which day an event is."""
    return world.chance.one((_age, _price, _day))(world)


def _age(world: World) -> Sentence:
    chance = world.chance
    actor: Nominal = name(world)
    youngest, oldest = 2, 99
    if chance.holds(0.6):
        kind, youngest, oldest = chance.one((("adult", 21, 99), ("young", 3, 20), ("pet", 2, 15)))
        actor = _this(world, world.noun(kind))._replace(is_plural=False)
    years = chance.between(youngest, oldest)
    old = times.phrase(f"{english_number(years)} years old", f"{german_number(years)} Jahre alt")
    return Sentence("statement", Clause(actor, world.lexicon.verbs["be"], predicate=Predicate(phrase=old)))


def _price(world: World) -> Sentence:
    chance = world.chance
    euros = NounPhrase(world.lexicon.nouns["euro"], number(chance.between(2, 99)), is_plural=True)
    noun = world.noun("clothes", "item", "dish", "furniture")
    thing = noun_phrase(world, noun, is_simple=True, is_plural=False)
    adjectives = tuple(adjective for adjective in thing.adjectives if adjective.scale != "price")
    thing = thing._replace(determiner=chance.one((THE, THIS)), owner=None, adjectives=adjectives)
    return Sentence("statement", Clause(thing, world.lexicon.verbs["cost"], chance.one(_TENSES), accusative=euros))


def _day(world: World) -> Sentence:
    chance = world.chance
    event = NounPhrase(world.noun("event"))
    day = times.date(world) if chance.holds(0.7) else times.weekday(world)
    tree = Clause(event, world.lexicon.verbs["be"], chance.one(_TENSES), predicate=Predicate(phrase=day))
    return Sentence("statement", tree)
