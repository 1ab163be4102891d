"""Questions, commands and sentences with an addressee, whose name decides whether "you" is du, ihr or Sie."""

from demo_grammar import times
from demo_grammar.clauses import clause
from demo_grammar.german_verbs import CAN, MUST, SHOULD, WANT_TO
from demo_grammar.lexicon import Verb
from demo_grammar.nominals import definite, name, noun_phrase, person, subject, two_names
from demo_grammar.sampler import WordSampler
from demo_grammar.times import Timing
from demo_grammar.tree import (
    DU,
    HE,
    HOW_MANY,
    IHR,
    SHE,
    SIE,
    THEY,
    WHAT,
    WHICH,
    WHO,
    Name,
    Nominal,
    NounPhrase,
    Pronoun,
    Sentence,
    Tense,
)

_WHEN = times.phrase("when", "wann")
_WHY = times.phrase("why", "warum")
_WHERE = times.phrase("where", "wo")
_CHILDREN = Name("children", "Kinder", is_plural=True, is_female=False)
_FRIENDS = Name("my friends", "meine Freunde", is_plural=True, is_female=False)
_ASKED_MODALS = (CAN, WANT_TO, MUST, SHOULD)
_DONE: tuple[Tense, ...] = ("past", "past", "future")


def yes_or_no(sampler: WordSampler) -> Sentence:
    """Return a question to answer with yes or no."""
    verb = sampler.chance.one(sampler.index.actions)
    tree = clause(sampler, verb, actor=_question_subject(sampler, verb), timing=_question_timing(sampler, verb))
    return Sentence("question", tree._replace(manner=None), front="")


def _question_timing(sampler: WordSampler, verb: Verb) -> Timing:
    draw = sampler.chance.below(100)
    if "state" in verb.flags:
        return Timing("present")
    if draw < 35:
        return Timing("past", time=times.time_for(sampler, "past", verb=verb) if draw < 12 else None)
    if draw < 62 and "luck" not in verb.flags:
        return Timing("future")
    if draw < 75 and "prog" in verb.flags:
        return Timing("progressive")
    if draw < 88 and "luck" not in verb.flags:
        return Timing("present", sampler.chance.one(_ASKED_MODALS))
    return Timing("perfect")


def _question_subject(sampler: WordSampler, verb: Verb) -> Nominal:
    if "person" not in verb.subjects:
        return definite(subject(sampler, verb.subjects))
    if sampler.chance.holds(0.3):
        return sampler.chance.one((HE, SHE, THEY))
    return definite(person(sampler, with_pronouns=False))


def open_question(sampler: WordSampler) -> Sentence:
    """Return a question with who, whom, what, which, how many, where, when or why."""
    chance = sampler.chance
    draw = chance.below(6)
    if draw == 0:
        timing = Timing(chance.one(_DONE))
        return Sentence("question", clause(sampler, chance.one(sampler.index.deeds), actor=WHO, timing=timing))
    if draw == 1:
        return _ask_for_object(sampler)
    verb = chance.one(
        sampler.index.actions if draw > 2 else [v for v in sampler.index.actions if v.places or v.possible_places]
    )
    tense: Tense = "present" if "state" in verb.flags else chance.one(_DONE)
    tree = clause(sampler, verb, actor=_question_subject(sampler, verb), timing=Timing(tense))._replace(manner=None)
    if draw == 2:
        return Sentence("question", tree._replace(place=_WHERE), front="place")
    return Sentence("question", tree._replace(time=_WHEN if draw == 3 else _WHY), front="time")


def _ask_for_object(sampler: WordSampler) -> Sentence:
    chance = sampler.chance
    verb = chance.one([v for v in sampler.index.deeds if (v.accusatives or v.datives) and not v.put])
    tree = clause(sampler, verb, actor=_question_subject(sampler, verb), timing=Timing(chance.one(_DONE)))
    tree = tree._replace(manner=None)
    if not verb.accusatives:
        return Sentence("question", tree._replace(dative=WHO), front="dative")
    phrase = tree.accusative
    if not isinstance(phrase, NounPhrase) or "person" in phrase.noun.classes:
        return Sentence("question", tree._replace(accusative=WHO), front="accusative")
    draw = chance.below(3)
    if (draw == 0 or not phrase.noun.german_plural) and verb.key not in sampler.index.verbs_with_senses:
        return Sentence("question", tree._replace(accusative=WHAT), front="accusative")
    is_count = draw == 1 and bool(phrase.noun.german_plural)
    asked = phrase._replace(
        determiner=HOW_MANY if is_count else WHICH, is_plural=is_count or phrase.is_plural, owner=None
    )
    return Sentence("question", tree._replace(accusative=asked), front="accusative")


def addressee(sampler: WordSampler) -> tuple[Name, Pronoun]:
    """Return an addressee and the German pronoun to address them with."""
    draw = sampler.chance.below(100)
    if draw < 38:
        return name(sampler), DU
    if draw < 70:
        surname = sampler.word("surname")
        english, german = sampler.chance.one((("Mr", "Herr"), ("Mrs", "Frau")))
        return Name(f"{english} {surname.english}", f"{german} {surname.german}", False, english == "Mrs"), SIE
    return sampler.chance.one((two_names(sampler), _CHILDREN, _FRIENDS)), IHR


def addressed(sampler: WordSampler) -> Sentence:
    """Return a statement or question about the addressee."""
    chance = sampler.chance
    somebody, you = addressee(sampler)
    verb = chance.one(sampler.index.deeds)
    if chance.holds(0.5):
        timing = _question_timing(sampler, verb)
        if timing.tense == "progressive":
            timing = Timing("perfect")
        tree = clause(sampler, verb, actor=you, timing=timing)._replace(manner=None)
        return Sentence("question", tree, front="", addressee=somebody, addressee_is_first=chance.holds(0.4))
    if chance.holds(0.4):
        return _about_you(sampler, somebody, you)
    tree = clause(sampler, verb, actor=you, timing=times.timing(sampler, verb, you))
    return Sentence("statement", tree, addressee=somebody, addressee_is_first=chance.holds(0.7))


def _about_you(sampler: WordSampler, somebody: Name, you: Pronoun) -> Sentence:
    """Return a statement with the addressee as the object: Anna, the teacher has called you."""
    chance = sampler.chance
    verb = chance.one([v for v in sampler.index.deeds if "person" in (*v.accusatives, *v.datives)])
    actor = definite(noun_phrase(sampler, sampler.noun("person"), is_simple=True, is_plural=False))
    if isinstance(actor, NounPhrase) and "kin" in actor.noun.classes:
        actor = actor._replace(determiner=you.possessive)
    timing = chance.one((Timing("perfect"), Timing("past"), Timing("future"), Timing("present", WANT_TO)))
    tree = clause(sampler, verb, actor=actor, timing=timing)
    tree = tree._replace(dative=you) if verb.datives else tree._replace(accusative=you)
    return Sentence("statement", tree, addressee=somebody, addressee_is_first=chance.holds(0.7))


def command(sampler: WordSampler) -> Sentence:
    """Return a request to do something, or not to do it."""
    chance = sampler.chance
    somebody, you = addressee(sampler)
    is_refusal = chance.holds(0.15)
    tree = clause(
        sampler, sampler.verb("imp"), actor=you, timing=Timing("present", negation="not" if is_refusal else "")
    )
    if is_refusal and tree.accusative is not None:
        tree = tree._replace(accusative=definite(tree.accusative))
    tree = tree._replace(manner=None)
    return Sentence("command", tree, addressee=somebody, addressee_is_first=chance.holds(0.6))
