"""Statements of one main clause, which may contain a clause with that, whether or to."""

from demo_grammar import clauses, times
from demo_grammar.clauses import clause
from demo_grammar.lexicon import Verb
from demo_grammar.nominals import name, noun_phrase, opening_phrase, person, plain_person, settle_pronoun, subject
from demo_grammar.relative_clauses import takes_relative, with_relative
from demo_grammar.sampler import WordSampler
from demo_grammar.times import Timing
from demo_grammar.tree import (
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
    Predicate,
    PrepositionalPhrase,
    Sentence,
    Tense,
)

_FEELINGS = ("tired", "hungry", "ill", "happy", "angry", "sad", "nervous")
_TRIED: tuple[Tense, ...] = ("past", "past", "present")
_DESTINATIONS = ("town", "@city", "@country", "waterside", "beach")
_DAILY = frozenset({"kitchen", "home", "nature"})
_SPEAKERS = (I, I, WE, HE, SHE, THEY)


def statement(sampler: WordSampler) -> Sentence:
    """Return a statement of one clause, with or without a relative clause."""
    verb = sampler.chance.one(sampler.index.actions)
    tree = clause(sampler, verb)
    is_plain = tree.tense in ("past", "perfect", "future") and not tree.negation and tree.frequency is None
    if is_plain and "person" in verb.subjects and sampler.chance.holds(0.03):
        tree = clause(sampler, verb, actor=NOBODY, timing=Timing(tree.tense))
    if sampler.chance.holds(0.26):
        tree = add_relative(sampler, tree)
    return Sentence("statement", tree)


def add_relative(sampler: WordSampler, tree: Clause) -> Clause:
    """Return the clause with a relative clause after its subject, or after an object that ends it."""
    is_open = tree.time is None and tree.manner is None and tree.place is None and tree.negation != "not yet"
    is_last = is_open and tree.oblique is None and tree.content is None and "to" not in tree.verb.flags
    thing = tree.accusative if is_last else None
    # "The farmer who got up rarely worked" has two meanings.
    is_ambiguous = (tree.frequency is not None or tree.negation == "never") and tree.tense in ("present", "past")
    if takes_relative(tree.subject) and not is_ambiguous and not (takes_relative(thing) and sampler.chance.holds(0.6)):
        return tree._replace(subject=with_relative(sampler, tree.subject, main=tree))
    return tree._replace(accusative=with_relative(sampler, thing, main=tree)) if takes_relative(thing) else tree


def fronted(sampler: WordSampler) -> Sentence:
    """Return a statement that begins with a time or place; in German the subject follows the verb."""
    verb = sampler.chance.one(sampler.index.events)
    actor = subject(sampler, verb.subjects)
    when = sampler.chance.one(("past", "past", "future", "habit"))
    if when == "habit" and not times.present_differs_from_past(verb, actor):
        when = "past"
    tense: Tense = {"past": "past", "future": "future"}.get(when, "present")  # type: ignore[assignment]
    timing = Timing(tense, time=times.time_for(sampler, when, verb=verb))
    tree = clause(sampler, verb, actor=actor, timing=timing)
    if verb.possible_places and isinstance(tree.place, PrepositionalPhrase) and sampler.chance.holds(0.5):
        return Sentence("statement", tree._replace(time=None, tense="past"), front="place")
    return Sentence("statement", tree, front="time")


def object_first(sampler: WordSampler) -> Sentence:
    """Return a statement that begins with the object in both languages: this book I have already read."""
    chance = sampler.chance
    verb = chance.one([v for v in sampler.index.deeds if v.accusatives and not v.datives and not v.put])
    timing = chance.one(
        (
            Timing("perfect", frequency=sampler.word("frequency", "perfect")),
            Timing("perfect", negation="never"),
            Timing("perfect", negation="not yet"),
            Timing("future", negation="never"),
        )
    )
    tree = clause(sampler, verb, actor=chance.one(_SPEAKERS), timing=timing)._replace(manner=None)
    if not isinstance(tree.accusative, NounPhrase) or "mass" in tree.accusative.noun.classes:
        return Sentence("statement", tree)
    accusative = tree.accusative._replace(determiner=THIS, owner=None)
    return Sentence("statement", tree._replace(accusative=accusative), front="accusative")


def passive(sampler: WordSampler) -> Sentence:
    """Return a statement in the passive."""
    chance = sampler.chance
    verb = chance.one(sampler.index.passives)
    noun = sampler.noun(*verb.accusatives)
    tense: Tense = chance.one(("past", "past", "past", "perfect", "present", "future"))
    if "luck" in verb.flags or (tense == "present" and verb.scene not in _DAILY):
        tense = "past"
    time = None
    if tense == "present" or (tense != "perfect" and chance.holds(0.5)):
        time = times.time_for(sampler, "habit" if tense == "present" else tense, verb=verb)
    agent: Nominal = name(sampler) if chance.holds(0.3) else noun_phrase(sampler, sampler.noun(*verb.subjects))
    has_agent = chance.holds(0.6) and not (isinstance(agent, NounPhrase) and agent.noun.english == noun.english)
    oblique = PrepositionalPhrase(clauses.BY, agent) if has_agent else None
    tree = Clause(opening_phrase(sampler, noun), verb, tense, is_passive=True, oblique=oblique, time=time)
    return Sentence("statement", tree, front="time" if time is not None and chance.holds(0.3) else "subject")


def infinitive(sampler: WordSampler) -> Sentence:
    """Return a statement with an infinitive: she tried to sing; he drove to Berlin to buy a car."""
    chance = sampler.chance
    tense = chance.one(_TRIED)
    if chance.holds(0.6):
        verb = sampler.verb("infinitive")
        lasting = verb.key == "begin.doing"
        deed = chance.one([v for v in sampler.index.plans if "prog" in v.flags] if lasting else sampler.index.plans)
        inner = clause(sampler, deed, actor=person(sampler), timing=Timing("present"))
        return Sentence("statement", Clause(inner.subject, verb, tense, content=Content("to", inner)))
    verb = sampler.lexicon.verbs[chance.one(("drive", "travel"))]
    inner = clause(sampler, sampler.verb("aim"), actor=person(sampler), timing=Timing("present"))._replace(place=None)
    place = clauses.destination(sampler, _DESTINATIONS)
    tree = Clause(inner.subject, verb, tense, place=place, content=Content("in order to", inner))
    return Sentence("statement", tree)


def reported(sampler: WordSampler) -> Sentence:
    """Return a statement that reports what a person says, knows or asks."""
    return Sentence("statement", report(sampler, depth=0))


def report(sampler: WordSampler, *, depth: int) -> Clause:
    """Return a clause that contains a clause with "that" or "whether"; `depth` more are nested in that clause."""
    chance = sampler.chance
    asks = chance.holds(0.25)
    verb = sampler.verb("whether" if asks else "that")
    tense: Tense = "past" if verb.key != "hope" and chance.holds(0.55) else "present"
    speaker = person(sampler)
    is_unknown = verb.key == "know.fact" and (asks or chance.holds(0.2))
    if depth:
        inner = report(sampler, depth=depth - 1)
    else:
        speaker, inner = _reported(
            sampler, speaker, tense, verb=verb, may_be_self=not asks and "luck" not in verb.flags
        )
    content = Content("whether" if asks else "that", inner)
    return Clause(speaker, verb, tense, negation="not" if is_unknown else "", content=content)


def _reported(
    sampler: WordSampler, speaker: Nominal, tense: Tense, *, verb: Verb, may_be_self: bool
) -> tuple[Nominal, Clause]:
    chance = sampler.chance
    actor: Nominal | None = None
    if may_be_self and chance.holds(0.45):
        speaker, pronoun = settle_pronoun(sampler, speaker)
        actor = pronoun if pronoun is not None and pronoun.english != "it" else None
    if chance.holds(0.3) and verb.key != "hope":
        actor = actor or plain_person(sampler, other_than=speaker)
        return speaker, feeling(sampler, actor, "past" if tense == "past" else "present")
    inner = chance.one(sampler.index.actions if actor is None else sampler.index.deeds)
    timing = Timing("past")
    if tense == "present":
        timing = (
            Timing("future") if verb.key == "hope" or chance.holds(0.3) else times.background_timing(sampler, inner)
        )
        if timing.tense == "past" and "prog" in inner.flags and chance.holds(0.4):
            timing = Timing("progressive")
    if actor is None:
        is_person = "person" in inner.subjects
        actor = plain_person(sampler, other_than=speaker) if is_person else subject(sampler, inner.subjects)
    return speaker, clause(sampler, inner, actor=actor, timing=timing)


def feeling(sampler: WordSampler, actor: Nominal, tense: Tense) -> Clause:
    """Return a clause about a feeling: he was tired."""
    adjective = sampler.lexicon.adjectives[sampler.chance.one(_FEELINGS)]
    return Clause(actor, sampler.lexicon.verbs["be"], tense, predicate=Predicate(adjective))


def existence(sampler: WordSampler) -> Sentence:
    """Return a statement with "there is", which German expresses by es gibt or a verb of posture."""
    chance = sampler.chance
    tense: Tense = chance.one(("present", "present", "past"))
    verb = sampler.lexicon.verbs[chance.one(("lie", "stand", "there is"))]
    if verb.key == "there is":
        thing = noun_phrase(sampler, sampler.noun("building", "sight"), is_simple=True, is_plural=False)
        thing = thing._replace(determiner=chance.one((A, A, NO)), owner=None)
        place = clauses.place_of(sampler, ("town", "town", "island", "@city"))
        return Sentence("existence", Clause(ES, verb, tense, accusative=thing, place=place), front="place")
    thing = noun_phrase(sampler, sampler.noun(*verb.subjects), is_plural=chance.holds(0.3))
    if thing.determiner.is_definite:
        thing = thing._replace(determiner=SOME if thing.is_plural else A, owner=None)
    return Sentence(
        "existence", Clause(thing, verb, tense, place=clauses.place_of(sampler, verb.places)), front="place"
    )
