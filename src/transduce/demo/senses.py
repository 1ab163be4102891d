"""Ambiguous nouns: bank is Bank or Ufer, key is Schlüssel or Taste, and only what is said at the end tells which."""

from transduce.demo.nominals import person
from transduce.demo.tree import THE, THIS, A, Clause, Content, Hint, NounPhrase, RelativePronoun, Sentence
from transduce.demo.world import World

_NEUTRAL = ("see", "describe", "mention", "draw", "photograph")  # what can be done to either sense


def ambiguous(world: World) -> Sentence:
    """Say something about an ambiguous noun, its sense told by the predicate."""
    chance = world.chance
    clue = chance.one(world.lexicon.clues)
    noun = world.lexicon.nouns[clue.sense]
    is_past = chance.holds(0.3)
    draw = chance.below(100)
    if draw < 25:
        verb = world.lexicon.verbs[chance.one(_NEUTRAL)]
        seen = Hint(RelativePronoun(noun.gender, is_person=False), clue, is_past)
        tree = Clause(person(world), verb, "past", accusative=NounPhrase(noun, chance.one((A, THE)), relative=seen))
        return Sentence("statement", tree)
    phrase = NounPhrase(noun, chance.one((THE, THE, THIS)))
    if chance.holds(0.55):
        phrase = phrase._replace(relative=_neutral(world, phrase))
    hint = Hint(phrase, clue, is_past)
    if draw < 75:
        return Sentence("statement", hint)
    verb = chance.one([verb for verb in world.verbs("that") if verb.key != "hope"])
    tree = Clause(person(world), verb, "past" if is_past else "present", content=Content("that", hint))
    return Sentence("statement", tree)


def _neutral(world: World, phrase: NounPhrase) -> Clause:
    """Return a relative clause that fits both senses and so puts the clue further away."""
    verb = world.lexicon.verbs[world.chance.one(_NEUTRAL)]
    time = world.word("time", "past") if world.chance.holds(0.4) else None
    pronoun = RelativePronoun(phrase.agreement, is_person=False)
    return Clause(person(world), verb, "past", time=time, accusative=pronoun)
