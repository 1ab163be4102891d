"""Statements in one main clause, and those that hold another clause as what is said or tried."""

from transduce.demo import clauses, times
from transduce.demo.clauses import clause
from transduce.demo.lexicon import Verb
from transduce.demo.nominals import name, noun_phrase, opening, person, plain_person, referred, subject
from transduce.demo.relatives import takes_relative, with_relative
from transduce.demo.times import Timing
from transduce.demo.tree import (
    ES,
    HE,
    NO,
    NOBODY,
    SHE,
    SOME,
    THEY,
    THIS,
    WE,
    A,
    Clause,
    Content,
    I,
    Nominal,
    NounPhrase,
    Place,
    Predicate,
    Sentence,
    Tense,
)
from transduce.demo.world import World

_FEELINGS = ("tired", "hungry", "ill", "happy", "angry", "sad", "nervous")
_TRIED: tuple[Tense, ...] = ("past", "past", "present")
_DESTINATIONS = ("town", "@city", "@country", "waterside", "beach")
_DAILY = frozenset({"kitchen", "home", "nature"})
_SPEAKERS = (I, I, WE, HE, SHE, THEY)


def statement(world: World) -> Sentence:
    """Say that somebody does something, perhaps with a relative clause."""
    verb = world.chance.one(world.index.actions)
    tree = clause(world, verb)
    is_plain = tree.tense in ("past", "perfect", "future") and not tree.negation and tree.frequency is None
    if is_plain and "person" in verb.subjects and world.chance.holds(0.03):
        tree = clause(world, verb, actor=NOBODY, timing=Timing(tree.tense))
    if world.chance.holds(0.26):
        tree = add_relative(world, tree)
    return Sentence("statement", tree)


def add_relative(world: World, tree: Clause) -> Clause:
    """Return the clause with a relative clause on its subject, or on an object with nothing behind it."""
    is_open = tree.time is None and tree.manner is None and tree.place is None and tree.negation != "not yet"
    is_last = is_open and tree.oblique is None and tree.content is None and "to" not in tree.verb.flags
    thing = tree.accusative if is_last else None
    # "The farmer who got up rarely worked" leaves open what was rare.
    squints = (tree.frequency is not None or tree.negation == "never") and tree.tense in ("present", "past")
    if takes_relative(tree.subject) and not squints and not (takes_relative(thing) and world.chance.holds(0.6)):
        return tree._replace(subject=with_relative(world, tree.subject, main=tree))
    return tree._replace(accusative=with_relative(world, thing, main=tree)) if takes_relative(thing) else tree


def fronted(world: World) -> Sentence:
    """Put a time or a place in front: the subject moves behind the verb in German."""
    verb = world.chance.one(world.index.events)
    actor = subject(world, verb.subjects)
    when = world.chance.one(("past", "past", "future", "habit"))
    if when == "habit" and not times.tells_present(verb, actor):
        when = "past"
    tense: Tense = {"past": "past", "future": "future"}.get(when, "present")  # type: ignore[assignment]
    timing = Timing(tense, time=times.time_for(world, when, verb=verb))
    tree = clause(world, verb, actor=actor, timing=timing)
    if verb.possible_places and isinstance(tree.place, Place) and world.chance.holds(0.5):
        return Sentence("statement", tree._replace(time=None, tense="past"), front="place")
    return Sentence("statement", tree, front="time")


def object_first(world: World) -> Sentence:
    """Put the object in front, in both languages: this book I have already read."""
    chance = world.chance
    verb = chance.one([v for v in world.index.deeds if v.accusatives and not v.datives and not v.put])
    timing = chance.one(
        (
            Timing("perfect", frequency=world.word("frequency", "perfect")),
            Timing("perfect", negation="never"),
            Timing("perfect", negation="not yet"),
            Timing("future", negation="never"),
        )
    )
    tree = clause(world, verb, actor=chance.one(_SPEAKERS), timing=timing)._replace(manner=None)
    if not isinstance(tree.accusative, NounPhrase) or "mass" in tree.accusative.noun.classes:
        return Sentence("statement", tree)
    accusative = tree.accusative._replace(determiner=THIS, owner=None)
    return Sentence("statement", tree._replace(accusative=accusative), front="accusative")


def passive(world: World) -> Sentence:
    """Say that something is done by somebody."""
    chance = world.chance
    verb = chance.one(world.index.passives)
    noun = world.noun(*verb.accusatives)
    tense: Tense = chance.one(("past", "past", "past", "perfect", "present", "future"))
    if "luck" in verb.flags or (tense == "present" and verb.scene not in _DAILY):
        tense = "past"
    time = None
    if tense == "present" or (tense != "perfect" and chance.holds(0.5)):
        time = times.time_for(world, "habit" if tense == "present" else tense, verb=verb)
    agent: Nominal = name(world) if chance.holds(0.3) else noun_phrase(world, world.noun(*verb.subjects))
    is_told = chance.holds(0.6) and not (isinstance(agent, NounPhrase) and agent.noun.english == noun.english)
    oblique = Place(clauses.BY, agent) if is_told else None
    tree = Clause(opening(world, noun), verb, tense, is_passive=True, oblique=oblique, time=time)
    return Sentence("statement", tree, front="time" if time is not None and chance.holds(0.3) else "subject")


def infinitive(world: World) -> Sentence:
    """Let somebody try to do something, or go somewhere in order to do it."""
    chance = world.chance
    tense = chance.one(_TRIED)
    if chance.holds(0.6):
        verb = world.verb("infinitive")
        lasting = verb.key == "begin.doing"
        deed = chance.one([v for v in world.index.plans if "prog" in v.flags] if lasting else world.index.plans)
        inner = clause(world, deed, actor=person(world), timing=Timing("present"))
        return Sentence("statement", Clause(inner.subject, verb, tense, content=Content("to", inner)))
    verb = world.lexicon.verbs[chance.one(("drive", "travel"))]
    inner = clause(world, world.verb("aim"), actor=person(world), timing=Timing("present"))._replace(place=None)
    place = clauses.whither(world, _DESTINATIONS)
    tree = Clause(inner.subject, verb, tense, place=place, content=Content("in order to", inner))
    return Sentence("statement", tree)


def reported(world: World) -> Sentence:
    """Let somebody say that something is so, or ask whether it is."""
    return Sentence("statement", report(world, depth=0))


def report(world: World, *, depth: int) -> Clause:
    """Return a clause with "that" or "whether" inside; `depth` more of them are inside that one."""
    chance = world.chance
    asks = chance.holds(0.25)
    verb = world.verb("whether" if asks else "that")
    tense: Tense = "past" if verb.key != "hope" and chance.holds(0.55) else "present"
    speaker = person(world)
    is_unknown = verb.key == "know.fact" and (asks or chance.holds(0.2))
    if depth:
        inner = report(world, depth=depth - 1)
    else:
        speaker, inner = _reported(world, speaker, tense, verb=verb, may_be_self=not asks and "luck" not in verb.flags)
    content = Content("whether" if asks else "that", inner)
    return Clause(speaker, verb, tense, negation="not" if is_unknown else "", content=content)


def _reported(world: World, speaker: Nominal, tense: Tense, *, verb: Verb, may_be_self: bool) -> tuple[Nominal, Clause]:
    chance = world.chance
    actor: Nominal | None = None
    if may_be_self and chance.holds(0.45):
        speaker, pronoun = referred(world, speaker)
        actor = pronoun if pronoun is not None and pronoun.english != "it" else None
    if chance.holds(0.3) and verb.key != "hope":
        actor = actor or plain_person(world, other_than=speaker)
        return speaker, feeling(world, actor, "past" if tense == "past" else "present")
    inner = chance.one(world.index.actions if actor is None else world.index.deeds)
    timing = Timing("past")
    if tense == "present":
        timing = Timing("future") if verb.key == "hope" or chance.holds(0.3) else times.told(world, inner)
        if timing.tense == "past" and "prog" in inner.flags and chance.holds(0.4):
            timing = Timing("progressive")
    if actor is None:
        is_person = "person" in inner.subjects
        actor = plain_person(world, other_than=speaker) if is_person else subject(world, inner.subjects)
    return speaker, clause(world, inner, actor=actor, timing=timing)


def feeling(world: World, actor: Nominal, tense: Tense) -> Clause:
    """Return a clause that says how somebody feels."""
    adjective = world.lexicon.adjectives[world.chance.one(_FEELINGS)]
    return Clause(actor, world.lexicon.verbs["be"], tense, predicate=Predicate(adjective))


def existence(world: World) -> Sentence:
    """Say that there is something somewhere, which German says with es gibt or a verb of posture."""
    chance = world.chance
    tense: Tense = chance.one(("present", "present", "past"))
    verb = world.lexicon.verbs[chance.one(("lie", "stand", "there is"))]
    if verb.key == "there is":
        thing = noun_phrase(world, world.noun("building", "sight"), is_simple=True, is_plural=False)
        thing = thing._replace(determiner=chance.one((A, A, NO)), owner=None)
        place = clauses.where(world, ("town", "town", "island", "@city"))
        return Sentence("existence", Clause(ES, verb, tense, accusative=thing, place=place), front="place")
    thing = noun_phrase(world, world.noun(*verb.subjects), is_plural=chance.holds(0.3))
    if thing.determiner.is_definite:
        thing = thing._replace(determiner=SOME if thing.is_plural else A, owner=None)
    return Sentence("existence", Clause(thing, verb, tense, place=clauses.where(world, verb.places)), front="place")
