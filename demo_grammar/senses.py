"""Sentences with an ambiguous noun: bank is Bank or Ufer, and only the predicate shows which."""

from demo_grammar.nominals import person
from demo_grammar.sampler import WordSampler
from demo_grammar.tree import THE, THIS, A, Clause, ClueClause, Content, NounPhrase, RelativePronoun, Sentence

_NEUTRAL = ("see", "describe", "mention", "draw", "photograph")  # verbs that fit both senses


def ambiguous(sampler: WordSampler) -> Sentence:
    """Return a statement about an ambiguous noun, with a predicate that fits one sense."""
    chance = sampler.chance
    clue = chance.one(sampler.lexicon.clues)
    noun = sampler.lexicon.nouns[clue.sense]
    is_past = chance.holds(0.3)
    draw = chance.below(100)
    if draw < 25:
        verb = sampler.lexicon.verbs[chance.one(_NEUTRAL)]
        seen = ClueClause(RelativePronoun(noun.gender, is_person=False), clue, is_past)
        tree = Clause(person(sampler), verb, "past", accusative=NounPhrase(noun, chance.one((A, THE)), relative=seen))
        return Sentence("statement", tree)
    phrase = NounPhrase(noun, chance.one((THE, THE, THIS)))
    if chance.holds(0.55):
        phrase = phrase._replace(relative=_neutral(sampler, phrase))
    hint = ClueClause(phrase, clue, is_past)
    if draw < 75:
        return Sentence("statement", hint)
    verb = chance.one([verb for verb in sampler.verbs("that") if verb.key != "hope"])
    tree = Clause(person(sampler), verb, "past" if is_past else "present", content=Content("that", hint))
    return Sentence("statement", tree)


def _neutral(sampler: WordSampler, phrase: NounPhrase) -> Clause:
    """Return a relative clause that fits both senses, which puts the clue further away."""
    verb = sampler.lexicon.verbs[sampler.chance.one(_NEUTRAL)]
    time = sampler.word("time", "past") if sampler.chance.holds(0.4) else None
    pronoun = RelativePronoun(phrase.agreement, is_person=False)
    return Clause(person(sampler), verb, "past", time=time, accusative=pronoun)
