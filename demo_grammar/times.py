"""Tense, time, adverb and negation that fit each other: yesterday with the past, already with the perfect."""

from typing import NamedTuple

from demo_grammar.english import agreement_of
from demo_grammar.german_verbs import CAN, HAVE_TO, LIKE_TO, MAY, MUST, MUST_NOT, SHOULD, WANT_TO, WOULD_LIKE, Modal
from demo_grammar.lexicon import Verb, Word
from demo_grammar.numerals import (
    english_hour,
    english_number,
    english_ordinal,
    german_hour,
    german_number,
    german_ordinal,
)
from demo_grammar.sampler import WordSampler
from demo_grammar.tree import DU, IHR, I, Negation, Nominal, NounPhrase, Tense

_MODALS = (CAN, CAN, MUST, SHOULD, MAY, WANT_TO, WANT_TO, HAVE_TO, WOULD_LIKE, LIKE_TO)
_UNITS = (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"), ("years", "Jahren"))
_DAYS_OF_MONTH = 28


class Timing(NamedTuple):
    """Tense, modal verb, time, adverb of frequency and negation of a clause."""

    tense: Tense
    modal: Modal | None = None
    time: Word | None = None
    frequency: Word | None = None
    negation: Negation = ""


def phrase(english: str, german: str) -> Word:
    """Return a phrase that is not in the lexicon."""
    return Word(english, english, german, frozenset(), "")


def date(sampler: WordSampler) -> Word:
    """Return a date: on the third of May."""
    day = sampler.chance.between(1, _DAYS_OF_MONTH)
    month = sampler.word("month")
    return phrase(f"on the {english_ordinal(day)} of {month.english}", f"am {german_ordinal(day)}en {month.german}")


def hour(sampler: WordSampler) -> Word:
    """Return a time of day: at half past seven."""
    quarters = sampler.chance.between(4, 51)
    return phrase(english_hour(quarters), german_hour(quarters))


def weekday(sampler: WordSampler) -> Word:
    """Return a day of the week: on Monday."""
    day = sampler.word("weekday")
    return phrase(f"on {day.english}", f"am {day.german}")


def distance(sampler: WordSampler, *, is_past: bool) -> Word:
    """Return a distance in time: three days ago, in three days."""
    count = sampler.chance.between(2, 12)
    english, german = sampler.chance.one(_UNITS)
    if is_past:
        return phrase(f"{english_number(count)} {english} ago", f"vor {german_number(count)} {german}")
    return phrase(f"in {english_number(count)} {english}", f"in {german_number(count)} {german}")


def time_for(sampler: WordSampler, tense: str, *, verb: Verb) -> Word:
    """Return a time that fits past, future or habit; verbs with the flag hour get a time of day or a weekday."""
    draw = sampler.chance.below(100)
    if "hour" in verb.flags:
        return hour(sampler) if draw < 70 else weekday(sampler)
    if tense != "habit":
        if draw < 62:
            return date(sampler)
        if draw < 70:
            return distance(sampler, is_past=tense == "past")
        if draw < 77:
            return weekday(sampler)
    elif draw < 60:
        day = sampler.word("weekday")
        return phrase(f"every {day.english}", f"jeden {day.german}")
    return sampler.word("time", tense)


def background_timing(sampler: WordSampler, verb: Verb) -> Timing:
    """Return a simple timing for a relative or reported clause."""
    if "state" in verb.flags:
        return Timing("present")
    if sampler.chance.holds(0.1):
        return Timing("past", time=time_for(sampler, "past", verb=verb))
    return Timing("perfect" if sampler.chance.holds(0.25) else "past")


def timing(sampler: WordSampler, verb: Verb, subject: Nominal) -> Timing:
    """Return tense, time, adverb, modal and negation for a statement."""
    chance = sampler.chance
    draw = chance.below(100)
    is_state = "state" in verb.flags
    if draw < 30:
        return _past(sampler, verb)
    if draw < 42 and not is_state:
        return _perfect(sampler)
    is_planned = not is_state and "luck" not in verb.flags
    if draw < 51 and is_planned:
        return _future(sampler, verb)
    if draw < 64 and is_planned and _has_a_will(subject):
        return _modal(sampler, verb)
    if draw >= 64 and not is_state and subject in (I, DU, IHR) and chance.holds(0.75):
        return _past(sampler, verb)  # first and second person mostly tell the past
    if draw < 74 and "prog" in verb.flags:
        return Timing("progressive")
    if draw < 84:
        return _negated(sampler, verb, subject)
    if is_state:
        return Timing("present") if chance.holds(0.6) else Timing("past")
    return _habit(sampler, verb, subject)


def _has_a_will(subject: Nominal) -> bool:
    return not isinstance(subject, NounPhrase) or "person" in subject.noun.classes


def _negated(sampler: WordSampler, verb: Verb, subject: Nominal) -> Timing:
    negation: Negation = "not" if "state" in verb.flags else sampler.chance.one(("not", "not", "never"))
    is_lasting = "state" in verb.flags or negation == "never"
    if is_lasting and present_differs_from_past(verb, subject) and sampler.chance.holds(0.6):
        return Timing("present", negation=negation)
    return Timing("past", negation=negation)


def present_differs_from_past(verb: Verb, subject: Nominal) -> bool:
    """Return whether present and past have different forms: "they put" is both."""
    return verb.english.base != verb.english.past or agreement_of(subject) == 1


def _past(sampler: WordSampler, verb: Verb) -> Timing:
    draw = sampler.chance.below(100)
    if draw < 60 and verb.flags.isdisjoint({"state", "timeless"}):
        return Timing("past", time=time_for(sampler, "past", verb=verb))
    if draw < 68 and verb.flags.isdisjoint({"state", "timeless"}):
        return Timing("past", frequency=sampler.word("frequency", "past"))
    return Timing("past")


def _perfect(sampler: WordSampler) -> Timing:
    draw = sampler.chance.below(100)
    if draw < 40:
        return Timing("perfect", frequency=sampler.word("frequency", "perfect"))
    if draw < 75:
        return Timing("perfect", negation=sampler.chance.one(("never", "not yet")))
    return Timing("perfect")


def _future(sampler: WordSampler, verb: Verb) -> Timing:
    draw = sampler.chance.below(100)
    if draw < 50:
        return Timing("future", time=time_for(sampler, "future", verb=verb))
    if draw < 75:
        return Timing("future", frequency=sampler.word("frequency", "future"))
    return Timing("future", negation="not" if draw < 85 else "")


def _modal(sampler: WordSampler, verb: Verb) -> Timing:
    chance = sampler.chance
    modal = chance.one(_MODALS)
    if modal is MUST and chance.holds(0.3):
        return Timing("present", MUST_NOT, negation="not")
    if modal in (CAN, HAVE_TO, WANT_TO) and chance.holds(0.4):
        return Timing("past", modal)
    if modal in (CAN, HAVE_TO, WANT_TO) and chance.holds(0.25):
        return Timing("present", modal, negation="not")
    if modal is not LIKE_TO and chance.holds(0.3):
        return Timing("present", modal, time=time_for(sampler, "future", verb=verb))
    return Timing("present", modal)


def _habit(sampler: WordSampler, verb: Verb, subject: Nominal) -> Timing:
    if not present_differs_from_past(verb, subject):
        return _past(sampler, verb)
    if "hour" not in verb.flags and sampler.chance.holds(0.5):
        return Timing("present", frequency=sampler.word("frequency", "habit"))
    return Timing("present", time=time_for(sampler, "habit", verb=verb))
