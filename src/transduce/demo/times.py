"""Tense, time and certainty that fit each other: yesterday goes with the past, already with the perfect."""

from typing import NamedTuple

from transduce.demo.english import agreement_of
from transduce.demo.german_verbs import CAN, HAVE_TO, LIKE_TO, MAY, MUST, MUST_NOT, SHOULD, WANT_TO, WOULD_LIKE, Modal
from transduce.demo.lexicon import Verb, Word
from transduce.demo.numerals import (
    english_hour,
    english_number,
    english_ordinal,
    german_hour,
    german_number,
    german_ordinal,
)
from transduce.demo.tree import DU, IHR, I, Negation, Nominal, NounPhrase, Tense
from transduce.demo.world import World

_MODALS = (CAN, CAN, MUST, SHOULD, MAY, WANT_TO, WANT_TO, HAVE_TO, WOULD_LIKE, LIKE_TO)
_UNITS = (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"), ("years", "Jahren"))
_DAYS_OF_MONTH = 28


class Timing(NamedTuple):
    """When a clause happens and whether it does."""

    tense: Tense
    modal: Modal | None = None
    time: Word | None = None
    frequency: Word | None = None
    negation: Negation = ""


def phrase(english: str, german: str) -> Word:
    """Return a phrase made of words that are not in the lexicon as a whole."""
    return Word(english, english, german, frozenset(), "")


def date(world: World) -> Word:
    """Return a day of the year: on the third of May."""
    day = world.chance.between(1, _DAYS_OF_MONTH)
    month = world.word("month")
    return phrase(f"on the {english_ordinal(day)} of {month.english}", f"am {german_ordinal(day)}en {month.german}")


def hour(world: World) -> Word:
    """Return an hour of the clock: at half past seven."""
    quarters = world.chance.between(4, 51)
    return phrase(english_hour(quarters), german_hour(quarters))


def weekday(world: World) -> Word:
    """Return a day of the week: on Monday."""
    day = world.word("weekday")
    return phrase(f"on {day.english}", f"am {day.german}")


def distance(world: World, *, is_past: bool) -> Word:
    """Return how long ago or from now: three days ago, in three days."""
    count = world.chance.between(2, 12)
    english, german = world.chance.one(_UNITS)
    if is_past:
        return phrase(f"{english_number(count)} {english} ago", f"vor {german_number(count)} {german}")
    return phrase(f"in {english_number(count)} {english}", f"in {german_number(count)} {german}")


def time_for(world: World, tense: str, *, verb: Verb) -> Word:
    """Return a time that fits past, future or habit; the clock only where the verb is a matter of minutes."""
    draw = world.chance.below(100)
    if "hour" in verb.flags:
        return hour(world) if draw < 70 else weekday(world)
    if tense != "habit":
        if draw < 62:
            return date(world)
        if draw < 70:
            return distance(world, is_past=tense == "past")
        if draw < 77:
            return weekday(world)
    elif draw < 60:
        day = world.word("weekday")
        return phrase(f"every {day.english}", f"jeden {day.german}")
    return world.word("time", tense)


def told(world: World, verb: Verb) -> Timing:
    """Return a plain tense for a clause that tells something by the way."""
    if "state" in verb.flags:
        return Timing("present")
    if world.chance.holds(0.1):
        return Timing("past", time=time_for(world, "past", verb=verb))
    return Timing("perfect" if world.chance.holds(0.25) else "past")


def timing(world: World, verb: Verb, subject: Nominal) -> Timing:
    """Return tense, time, adverb, modal and negation for a statement."""
    chance = world.chance
    draw = chance.below(100)
    is_state = "state" in verb.flags
    if draw < 30:
        return _past(world, verb)
    if draw < 42 and not is_state:
        return _perfect(world)
    is_planned = not is_state and "luck" not in verb.flags
    if draw < 51 and is_planned:
        return _future(world, verb)
    if draw < 64 and is_planned and _has_a_will(subject):
        return _modal(world, verb)
    if draw >= 64 and not is_state and subject in (I, DU, IHR) and chance.holds(0.75):
        return _past(world, verb)  # people tell what they have done rather than what they do
    if draw < 74 and "prog" in verb.flags:
        return Timing("progressive")
    if draw < 84:
        return _denied(world, verb, subject)
    if is_state:
        return Timing("present") if chance.holds(0.6) else Timing("past")
    return _habit(world, verb, subject)


def _has_a_will(subject: Nominal) -> bool:
    return not isinstance(subject, NounPhrase) or "person" in subject.noun.classes


def _denied(world: World, verb: Verb, subject: Nominal) -> Timing:
    negation: Negation = "not" if "state" in verb.flags else world.chance.one(("not", "not", "never"))
    is_lasting = "state" in verb.flags or negation == "never"
    if is_lasting and tells_present(verb, subject) and world.chance.holds(0.6):
        return Timing("present", negation=negation)
    return Timing("past", negation=negation)


def tells_present(verb: Verb, subject: Nominal) -> bool:
    """Return whether the simple present can be told from the past: they put is both."""
    return verb.english.base != verb.english.past or agreement_of(subject) == 1


def _past(world: World, verb: Verb) -> Timing:
    draw = world.chance.below(100)
    if draw < 60 and verb.flags.isdisjoint({"state", "timeless"}):
        return Timing("past", time=time_for(world, "past", verb=verb))
    if draw < 68 and verb.flags.isdisjoint({"state", "timeless"}):
        return Timing("past", frequency=world.word("frequency", "past"))
    return Timing("past")


def _perfect(world: World) -> Timing:
    draw = world.chance.below(100)
    if draw < 40:
        return Timing("perfect", frequency=world.word("frequency", "perfect"))
    if draw < 75:
        return Timing("perfect", negation=world.chance.one(("never", "not yet")))
    return Timing("perfect")


def _future(world: World, verb: Verb) -> Timing:
    draw = world.chance.below(100)
    if draw < 50:
        return Timing("future", time=time_for(world, "future", verb=verb))
    if draw < 75:
        return Timing("future", frequency=world.word("frequency", "future"))
    return Timing("future", negation="not" if draw < 85 else "")


def _modal(world: World, verb: Verb) -> Timing:
    chance = world.chance
    modal = chance.one(_MODALS)
    if modal is MUST and chance.holds(0.3):
        return Timing("present", MUST_NOT, negation="not")
    if modal in (CAN, HAVE_TO, WANT_TO) and chance.holds(0.4):
        return Timing("past", modal)
    if modal in (CAN, HAVE_TO, WANT_TO) and chance.holds(0.25):
        return Timing("present", modal, negation="not")
    if modal is not LIKE_TO and chance.holds(0.3):
        return Timing("present", modal, time=time_for(world, "future", verb=verb))
    return Timing("present", modal)


def _habit(world: World, verb: Verb, subject: Nominal) -> Timing:
    if not tells_present(verb, subject):
        return _past(world, verb)
    if "hour" not in verb.flags and world.chance.holds(0.5):
        return Timing("present", frequency=world.word("frequency", "habit"))
    return Timing("present", time=time_for(world, "habit", verb=verb))
