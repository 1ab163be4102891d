"""The word sampler: draws words of the lexicon at random by class, kind or flag."""

import functools

from demo_grammar.chance import Chance
from demo_grammar.lexicon import Noun, Verb, Word, lexicon

_NEEDS_MORE = frozenset({"that", "whether", "infinitive", "predicate", "weather", "job", "measure", "existence"})


class WordIndex:
    """Words of the lexicon, selected by use.

    `actions` are the verbs that need no other clause or predicate, `events` the actions that are no states, `deeds` the
    events that people do, `plans` the deeds that people intend. `scenes` has the deeds that fit one situation,
    `done_by` the actions with a noun as subject, `done_to` the actions with it as object.
    """

    def __init__(self) -> None:
        self.lexicon = lexicon()
        verbs, nouns = self.lexicon.verbs.values(), self.lexicon.nouns.values()
        self.actions = tuple(verb for verb in verbs if verb.flags.isdisjoint(_NEEDS_MORE))
        self.events = tuple(verb for verb in self.actions if "state" not in verb.flags)
        self.deeds = tuple(verb for verb in self.events if "person" in verb.subjects)
        self.plans = tuple(verb for verb in self.deeds if "luck" not in verb.flags)
        spoken = [(verb.english.base, verb.english.particle) for verb in verbs if verb.accusatives]
        self.verbs_with_senses = frozenset(  # the object decides the translation: to paint a wall, a picture
            verb.key for verb in verbs if spoken.count((verb.english.base, verb.english.particle)) > 1
        )
        self.passives = tuple(verb for verb in self.events if "pass" in verb.flags)
        scenes = sorted({verb.scene for verb in self.deeds if verb.scene})
        self.scenes = {scene: tuple(verb for verb in self.deeds if verb.scene == scene) for scene in scenes}
        self.described = tuple(noun for noun in nouns if self.lexicon.fitting[noun.key])
        self.done_by = {noun.key: tuple(v for v in self.actions if _fits(noun, v.subjects)) for noun in nouns}
        self.done_to = {
            noun.key: tuple(v for v in self.actions if _fits(noun, v.accusatives) and not v.put and v.key != "have")
            for noun in nouns
        }


def _fits(noun: Noun, classes: tuple[str, ...]) -> bool:
    return not noun.classes.isdisjoint(classes)


@functools.cache
def _index() -> WordIndex:
    return WordIndex()


@functools.cache
def _nouns(classes: tuple[str, ...]) -> tuple[Noun, ...]:
    return tuple({noun.key: noun for name in classes for noun in lexicon().members[name]}.values())


@functools.cache
def _words(kind: str, flag: str) -> tuple[Word, ...]:
    return tuple(word for word in lexicon().words[kind] if not flag or flag in word.flags)


@functools.cache
def _verbs(flag: str) -> tuple[Verb, ...]:
    return tuple(verb for verb in lexicon().verbs.values() if flag in verb.flags)


class WordSampler:
    """The lexicon, its index, and the random choices of one stream of sentences."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.index = _index()
        self.lexicon = self.index.lexicon

    def nouns(self, *classes: str) -> tuple[Noun, ...]:
        """Return all nouns of these classes, each once."""
        return _nouns(classes)

    def words(self, kind: str, flag: str = "") -> tuple[Word, ...]:
        """Return the uninflected words of a kind; with a flag, only those that have it."""
        return _words(kind, flag)

    def verbs(self, flag: str) -> tuple[Verb, ...]:
        """Return the verbs with a flag."""
        return _verbs(flag)

    def noun(self, *classes: str) -> Noun:
        """Draw a noun of these classes."""
        return self.chance.one(_nouns(classes))

    def word(self, kind: str, flag: str = "") -> Word:
        """Draw an uninflected word of a kind; with a flag, one that has it."""
        return self.chance.one(_words(kind, flag))

    def verb(self, flag: str) -> Verb:
        """Draw a verb with a flag."""
        return self.chance.one(_verbs(flag))
