"""What a composer of sentences has at hand: the lexicon, its indexes, and chance."""

import functools

from transduce.demo.chance import Chance
from transduce.demo.lexicon import Lexicon, Noun, Verb, Word, lexicon

_NEEDS_MORE = frozenset({"that", "whether", "infinitive", "predicate", "weather", "job", "measure", "existence"})


class World:
    """The lexicon with its indexes, and the chance that one stream of sentences draws on."""

    def __init__(self, chance: Chance) -> None:
        self.lexicon: Lexicon = lexicon()
        self.chance = chance
        verbs = tuple(self.lexicon.verbs.values())
        self.actions = tuple(verb for verb in verbs if verb.flags.isdisjoint(_NEEDS_MORE))
        self.events = tuple(verb for verb in self.actions if "state" not in verb.flags)
        self.deeds = tuple(verb for verb in self.events if "person" in verb.subjects)
        scenes = sorted({verb.scene for verb in self.deeds})
        self.scenes = {scene: tuple(verb for verb in self.deeds if verb.scene == scene) for scene in scenes if scene}
        self.plans = tuple(verb for verb in self.deeds if "luck" not in verb.flags)
        nouns = self.lexicon.nouns.values()
        self.done_by = {noun.key: tuple(v for v in self.actions if _fits(noun, v.subjects)) for noun in nouns}
        self.done_to = {
            noun.key: tuple(v for v in self.actions if _fits(noun, v.accusatives) and not v.put and v.key != "have")
            for noun in nouns
        }
        self.described = tuple(noun for noun in nouns if self.lexicon.fitting[noun.key])
        self.passives = tuple(verb for verb in self.events if "pass" in verb.flags)
        # Caches of this world alone, so that nothing outlives it.
        self.nouns = functools.cache(self._nouns)
        self.words = functools.cache(self._words)
        self.verbs = functools.cache(self._verbs)

    def _nouns(self, *classes: str) -> tuple[Noun, ...]:
        """Return every noun that belongs to one of the classes, each once."""
        return tuple({noun.key: noun for name in classes for noun in self.lexicon.members[name]}.values())

    def _words(self, kind: str, flag: str = "") -> tuple[Word, ...]:
        """Return the uninflected words of a kind, those with `flag` if one is given."""
        return tuple(word for word in self.lexicon.words[kind] if not flag or flag in word.flags)

    def _verbs(self, flag: str) -> tuple[Verb, ...]:
        """Return the verbs with a flag."""
        return tuple(verb for verb in self.lexicon.verbs.values() if flag in verb.flags)

    def noun(self, *classes: str) -> Noun:
        """Return one noun of these classes."""
        return self.chance.one(self.nouns(*classes))

    def word(self, kind: str, flag: str = "") -> Word:
        """Return one uninflected word of a kind, which fits `flag`."""
        return self.chance.one(self.words(kind, flag))

    def verb(self, flag: str) -> Verb:
        """Return one verb with a flag."""
        return self.chance.one(self.verbs(flag))


def _fits(noun: Noun, classes: tuple[str, ...]) -> bool:
    return not noun.classes.isdisjoint(classes)
