"""Questions, commands, and sentences to somebody: only the name tells whether "you" is du, ihr or Sie."""

from transduce.demo import times
from transduce.demo.clauses import clause
from transduce.demo.german_verbs import CAN, MUST, SHOULD, WANT_TO
from transduce.demo.lexicon import Verb
from transduce.demo.nominals import definite, name, names, noun_phrase, person, subject
from transduce.demo.times import Timing
from transduce.demo.tree import (
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
from transduce.demo.world import World

_WHEN = times.phrase("when", "wann")
_WHY = times.phrase("why", "warum")
_WHERE = times.phrase("where", "wo")
_CHILDREN = Name("children", "Kinder", is_plural=True, is_female=False)
_FRIENDS = Name("my friends", "meine Freunde", is_plural=True, is_female=False)
_ASKED_MODALS = (CAN, WANT_TO, MUST, SHOULD)
_DONE: tuple[Tense, ...] = ("past", "past", "future")


def yes_or_no(world: World) -> Sentence:
    """Ask whether something is so."""
    verb = world.chance.one(world.index.actions)
    tree = clause(world, verb, actor=_asked_about(world, verb), timing=_asked(world, verb))
    return Sentence("question", tree._replace(manner=None), front="")


def _asked(world: World, verb: Verb) -> Timing:
    draw = world.chance.below(100)
    if "state" in verb.flags:
        return Timing("present")
    if draw < 35:
        return Timing("past", time=times.time_for(world, "past", verb=verb) if draw < 12 else None)
    if draw < 62 and "luck" not in verb.flags:
        return Timing("future")
    if draw < 75 and "prog" in verb.flags:
        return Timing("progressive")
    if draw < 88 and "luck" not in verb.flags:
        return Timing("present", world.chance.one(_ASKED_MODALS))
    return Timing("perfect")


def _asked_about(world: World, verb: Verb) -> Nominal:
    if "person" not in verb.subjects:
        return definite(subject(world, verb.subjects))
    if world.chance.holds(0.3):
        return world.chance.one((HE, SHE, THEY))
    return definite(person(world, with_pronouns=False))


def open_question(world: World) -> Sentence:
    """Ask who, whom, what, which, how many, where, when or why."""
    chance = world.chance
    draw = chance.below(6)
    if draw == 0:
        timing = Timing(chance.one(_DONE))
        return Sentence("question", clause(world, chance.one(world.index.deeds), actor=WHO, timing=timing))
    if draw == 1:
        return _ask_for_object(world)
    verb = chance.one(
        world.index.actions if draw > 2 else [v for v in world.index.actions if v.places or v.possible_places]
    )
    tense: Tense = "present" if "state" in verb.flags else chance.one(_DONE)
    tree = clause(world, verb, actor=_asked_about(world, verb), timing=Timing(tense))._replace(manner=None)
    if draw == 2:
        return Sentence("question", tree._replace(place=_WHERE), front="place")
    return Sentence("question", tree._replace(time=_WHEN if draw == 3 else _WHY), front="time")


def _ask_for_object(world: World) -> Sentence:
    chance = world.chance
    verb = chance.one([v for v in world.index.deeds if (v.accusatives or v.datives) and not v.put])
    tree = clause(world, verb, actor=_asked_about(world, verb), timing=Timing(chance.one(_DONE)))
    tree = tree._replace(manner=None)
    if not verb.accusatives:
        return Sentence("question", tree._replace(dative=WHO), front="dative")
    phrase = tree.accusative
    if not isinstance(phrase, NounPhrase) or "person" in phrase.noun.classes:
        return Sentence("question", tree._replace(accusative=WHO), front="accusative")
    draw = chance.below(3)
    if (draw == 0 or not phrase.noun.german_plural) and verb.key not in world.index.told_by_object:
        return Sentence("question", tree._replace(accusative=WHAT), front="accusative")
    is_count = draw == 1 and bool(phrase.noun.german_plural)
    asked = phrase._replace(
        determiner=HOW_MANY if is_count else WHICH, is_plural=is_count or phrase.is_plural, owner=None
    )
    return Sentence("question", tree._replace(accusative=asked), front="accusative")


def addressee(world: World) -> tuple[Name, Pronoun]:
    """Return somebody to talk to and the "you" that is due to them."""
    draw = world.chance.below(100)
    if draw < 38:
        return name(world), DU
    if draw < 70:
        surname = world.word("surname")
        english, german = world.chance.one((("Mr", "Herr"), ("Mrs", "Frau")))
        return Name(f"{english} {surname.english}", f"{german} {surname.german}", False, english == "Mrs"), SIE
    return world.chance.one((names(world), _CHILDREN, _FRIENDS)), IHR


def addressed(world: World) -> Sentence:
    """Tell or ask somebody something about themselves."""
    chance = world.chance
    somebody, you = addressee(world)
    verb = chance.one(world.index.deeds)
    if chance.holds(0.5):
        timing = _asked(world, verb)
        if timing.tense == "progressive":
            timing = Timing("perfect")
        tree = clause(world, verb, actor=you, timing=timing)._replace(manner=None)
        return Sentence("question", tree, front="", addressee=somebody, addressee_is_first=chance.holds(0.4))
    if chance.holds(0.4):
        return _about_you(world, somebody, you)
    tree = clause(world, verb, actor=you, timing=times.timing(world, verb, you))
    return Sentence("statement", tree, addressee=somebody, addressee_is_first=chance.holds(0.7))


def _about_you(world: World, somebody: Name, you: Pronoun) -> Sentence:
    """Tell somebody what another one did to or for them: Anna, the teacher has called you."""
    chance = world.chance
    verb = chance.one([v for v in world.index.deeds if "person" in (*v.accusatives, *v.datives)])
    actor = definite(noun_phrase(world, world.noun("person"), is_simple=True, is_plural=False))
    if isinstance(actor, NounPhrase) and "kin" in actor.noun.classes:
        actor = actor._replace(determiner=you.possessive)
    timing = chance.one((Timing("perfect"), Timing("past"), Timing("future"), Timing("present", WANT_TO)))
    tree = clause(world, verb, actor=actor, timing=timing)
    tree = tree._replace(dative=you) if verb.datives else tree._replace(accusative=you)
    return Sentence("statement", tree, addressee=somebody, addressee_is_first=chance.holds(0.7))


def command(world: World) -> Sentence:
    """Ask somebody to do something, or not to."""
    chance = world.chance
    somebody, you = addressee(world)
    is_refusal = chance.holds(0.15)
    tree = clause(world, world.verb("imp"), actor=you, timing=Timing("present", negation="not" if is_refusal else ""))
    if is_refusal and tree.accusative is not None:
        tree = tree._replace(accusative=definite(tree.accusative))
    tree = tree._replace(manner=None)
    return Sentence("command", tree, addressee=somebody, addressee_is_first=chance.holds(0.6))
