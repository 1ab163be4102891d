"""Sentences of two clauses, joined by because, although, when, if, while, before, after, but or and; nested sentences.

The second clause refers to the subject of the first, and often to its object, by pronouns: "it" becomes er, sie or es
by the gender of a noun in the other clause.
"""

from typing import NamedTuple

from demo_grammar.clauses import clause
from demo_grammar.lexicon import Verb
from demo_grammar.nominals import person, plain_person, settle_pronoun
from demo_grammar.sampler import WordSampler
from demo_grammar.sentences import add_relative, feeling, report
from demo_grammar.times import Timing
from demo_grammar.tree import (
    ES,
    THEY,
    Clause,
    Negation,
    Nominal,
    NounPhrase,
    Predicate,
    Pronoun,
    RelativePronoun,
    Sentence,
    Tense,
)


class _Tenses(NamedTuple):
    main: Tense
    subordinate: Tense
    may_lead: bool


_CONJUNCTIONS = {
    "because": _Tenses("past", "past", may_lead=False),
    "although": _Tenses("past", "past", may_lead=False),
    "when.once": _Tenses("past", "past", may_lead=True),
    "when.if": _Tenses("present", "present", may_lead=True),
    "if": _Tenses("future", "present", may_lead=True),
    "while": _Tenses("past", "past", may_lead=True),
    "before": _Tenses("past", "past", may_lead=True),
    "after": _Tenses("past", "pluperfect", may_lead=True),
}
_WANTED = frozenset({"need", "like", "love", "have"})


def with_subordinate(sampler: WordSampler) -> Sentence:
    """Return a sentence with a main and a subordinate clause, in either order."""
    chance = sampler.chance
    key = chance.one(tuple(_CONJUNCTIONS))
    join = _CONJUNCTIONS[key]
    conjunction = next(word for word in sampler.words("conjunction") if word.key == key)
    leads = join.may_lead and chance.holds(0.55)
    first_tense, second_tense = (join.subordinate, join.main) if leads else (join.main, join.subordinate)
    actor = (
        plain_person(sampler) if key == "while" else _person_with_pronoun(sampler, has_pronouns="present" not in join)
    )
    verb = _draw_deed(sampler, first_tense, flag="prog" if key == "while" else "")
    first = clause(sampler, verb, actor=actor, timing=Timing(first_tense))._replace(manner=None)
    if key == "while":
        verb = _draw_deed(sampler, "past", flag="prog")
        second = clause(sampler, verb, actor=plain_person(sampler, other_than=actor), timing=Timing("past"))
    elif key in ("because", "although"):
        first, second = _reason(sampler, first, is_despite=key == "although")
    elif key in ("when.if", "when.once") and chance.holds(0.4):
        first, pronoun = _settle_subject(sampler, first)
        second = feeling(sampler, pronoun, second_tense)
    else:
        first, second = _next_deed(sampler, first, second_tense, with_it=key in ("if", "before", "after"))
    main, subordinate = (second, first) if leads else (first, second)
    return Sentence("statement", main, conjunction=conjunction, subordinate=subordinate, subordinate_is_first=leads)


def _draw_deed(sampler: WordSampler, tense: Tense, *, flag: str = "") -> Verb:
    while True:
        verb = sampler.chance.one(sampler.index.deeds)
        if (
            verb.scene
            and (not flag or flag in verb.flags)
            and (tense != "present" or verb.english.base != verb.english.past)
        ):
            return verb


def _person_with_pronoun(sampler: WordSampler, *, has_pronouns: bool = True) -> Nominal:
    """Return a person that a pronoun can refer to."""
    while True:
        found = person(sampler, with_pronouns=has_pronouns)
        if settle_pronoun(sampler, found)[1] is not None:
            return found


def _settle_subject(sampler: WordSampler, tree: Clause) -> tuple[Clause, Pronoun]:
    """Return the clause with the sex of its subject decided, and the pronoun for the subject."""
    actor, pronoun = settle_pronoun(sampler, tree.subject)
    assert pronoun is not None, "the subject comes from _person_with_pronoun"
    return tree._replace(subject=actor), pronoun


def _next_deed(sampler: WordSampler, first: Clause, tense: Tense, *, with_it: bool = True) -> tuple[Clause, Clause]:
    """Return the clause, and a clause in which the same subject does something else, often to the same object."""
    chance = sampler.chance
    thing = _object_pronoun(sampler, first) if with_it else None
    first, pronoun = _settle_subject(sampler, first)
    if thing is not None and chance.holds(0.6):
        verbs = [
            verb for verb in _verbs_for_object(sampler, first, tense) if verb.english.base != first.verb.english.base
        ]
        if verbs:
            return first, Clause(pronoun, chance.one(verbs), tense, accusative=thing)
    verb = chance.one(sampler.index.scenes[first.verb.scene])
    if verb.english.base == first.verb.english.base or (tense == "present" and verb.english.base == verb.english.past):
        verb = _draw_deed(sampler, tense)
    return first, clause(sampler, verb, actor=pronoun, timing=Timing(tense))._replace(manner=None)


def _verbs_for_object(sampler: WordSampler, tree: Clause, tense: Tense) -> list[Verb]:
    """Return the verbs that take the object of the clause and need no other object."""
    assert isinstance(tree.accusative, NounPhrase), "_object_pronoun has found a noun phrase"
    return [
        verb
        for verb in sampler.index.done_to[tree.accusative.noun.key]
        if verb in sampler.index.deeds
        and verb.key not in ("see", "hear")
        and not verb.datives
        and verb.english.particle in ("", "for")
        and (tense != "present" or verb.english.base != verb.english.past)
    ]


def _reason(sampler: WordSampler, first: Clause, *, is_despite: bool) -> tuple[Clause, Clause]:
    """Return the clause and its reason or obstacle: the weather, a feeling, or a property of its object."""
    chance = sampler.chance
    if is_despite and chance.holds(0.25):
        return first, Clause(ES, sampler.verb("weather"), "past")
    thing = _object_pronoun(sampler, first)
    if thing is not None and isinstance(first.accusative, NounPhrase):
        noun = first.accusative.noun
        shown = {adjective.scale for adjective in first.accusative.adjectives} | {"colour"}
        fitting = [adjective for adjective in sampler.lexicon.fitting[noun.key] if adjective.scale not in shown]
        if fitting and chance.holds(0.45):
            predicate = Predicate(chance.one(fitting))
            return first, Clause(thing, sampler.lexicon.verbs["be"], "past", predicate=predicate)
        wanted = [verb for verb in sampler.index.done_to[noun.key] if verb.key in _WANTED and verb is not first.verb]
        if wanted and chance.holds(0.6):
            first, pronoun = _settle_subject(sampler, first)
            negation: Negation = "not" if is_despite else ""
            return first, Clause(pronoun, chance.one(wanted), "past", negation=negation, accusative=thing)
    first, pronoun = _settle_subject(sampler, first)
    return first, feeling(sampler, pronoun, "past")


def _object_pronoun(sampler: WordSampler, tree: Clause) -> Pronoun | None:
    """Return the pronoun for the object of the clause, or None if it is a person, a language or a game."""
    phrase = tree.accusative
    if not isinstance(phrase, NounPhrase) or not phrase.noun.classes.isdisjoint({"person", "language", "game"}):
        return None
    if tree.verb.key == "play.music" or tree.verb.put:  # "it" could be the vase or the table under it
        return None
    return THEY if phrase.is_plural else settle_pronoun(sampler, phrase)[1]


def joined(sampler: WordSampler) -> Sentence:
    """Return a sentence of two main clauses with one subject: he bought bread and ate it, or but did not eat it."""
    chance = sampler.chance
    first = clause(
        sampler, _draw_deed(sampler, "past"), actor=_person_with_pronoun(sampler), timing=Timing("past")
    )._replace(manner=None)
    if _object_pronoun(sampler, first) is not None and chance.holds(0.5):
        first, second = _next_deed(sampler, first, "past")
        if isinstance(second.accusative, Pronoun):
            return Sentence("statement", first, joined=second._replace(negation="not"), joint="but")
        return Sentence("statement", first, joined=second, joint="and")
    first, second = _next_deed(sampler, first._replace(subject=_masculine(first.subject)), "past")
    return Sentence("statement", first, joined=second, joint="and", joined_keeps_subject=False)


def _masculine(tree: Nominal) -> Nominal:
    """Return the nominal as masculine (Lehrer), for sentences in which no pronoun states the sex."""
    if isinstance(tree, NounPhrase):
        return tree._replace(noun=tree.noun._replace(classes=tree.noun.classes - {"role"}))
    return tree


def nested(sampler: WordSampler) -> Sentence:
    """Return a long sentence with relative clauses inside relative clauses, or reports inside reports."""
    draw = sampler.chance.below(3)
    if draw == 0:
        return Sentence(
            "statement", _with_nested_relatives(sampler, report(sampler, depth=sampler.chance.between(1, 2)))
        )
    tree = with_subordinate(sampler) if draw == 1 else joined(sampler)
    main, subordinate, second = (
        _with_nested_relatives(sampler, part) if isinstance(part, Clause) else part
        for part in (tree.main, tree.subordinate, tree.joined)
    )
    assert main is not None, "a sentence has a main clause"
    return tree._replace(main=main, subordinate=subordinate, joined=second)


def _with_nested_relatives(sampler: WordSampler, tree: Clause) -> Clause:
    """Return the clause with nested relative clauses, in the clause that it reports too."""
    if tree.content is not None and isinstance(tree.content.clause, Clause):
        tree = tree._replace(content=tree.content._replace(clause=_with_nested_relatives(sampler, tree.content.clause)))
    tree = add_relative(sampler, tree)
    subject, accusative = tree.subject, tree.accusative
    if isinstance(subject, NounPhrase) and isinstance(subject.relative, Clause):
        subject = subject._replace(relative=_extended(sampler, subject.relative))
    if isinstance(accusative, NounPhrase) and isinstance(accusative.relative, Clause):
        accusative = accusative._replace(relative=_extended(sampler, accusative.relative))
    return tree._replace(subject=subject, accusative=accusative)


def _extended(sampler: WordSampler, relative: Clause) -> Clause:
    """Add a relative clause at the end of a relative clause; one in its middle is hard to follow."""
    return add_relative(sampler, relative) if isinstance(relative.subject, RelativePronoun) else relative
