"""German sentences from trees: tenses, cases and word order.

    front | finite verb | subject, pronouns, time, objects, manner, place | participle, infinitive or prefix | clauses

The finite verb of a main clause is second. Commands and questions without a question word begin with it. A subordinate
clause ends with it, after participle, infinitive and prefix. A past event takes the preterite; in questions, and with
the subjects I, you and we, it takes the perfect, except for verbs of state.
"""

from typing import Literal, NamedTuple

from demo_grammar.english import relative_slot
from demo_grammar.german_nouns import ENDINGS, after_preposition, noun_phrase
from demo_grammar.german_verbs import HABEN, LIKE_TO, SEIN, WERDEN, Forms
from demo_grammar.marks import weave
from demo_grammar.tree import (
    A_BARE,
    BARE,
    NO,
    A,
    Case,
    Clause,
    ClueClause,
    Name,
    Nominal,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
    Slot,
)

_CONJUNCTIONS = {"that": "dass", "whether": "ob"}
_JOINTS = {"but": ", aber", "and": " und"}
_REFLEXIVE = {
    "accusative": ("mich", "dich", "sich", "uns", "euch", "sich"),
    "dative": ("mir", "dir", "sich", "uns", "euch", "sich"),
}
# The relative clause of the phrase before these adverbs follows the verb.
_ADVERBS = frozenset({"nicht", "nie", "noch", "schon", "gern"})
_LATE_ADVERBS = frozenset({"schon"})  # adverbs that follow a definite object: er hat das Buch schon gelesen


class VerbGroup(NamedTuple):
    """The finite verb, the participle or infinitive at the end of the clause, and the separable prefix."""

    finite: str
    nonfinite: str = ""
    prefix: str = ""


class Phrase(NamedTuple):
    """A phrase and its relative clause, which can follow the verb instead of the phrase."""

    core: str
    relative: str = ""


def sentence(tree: Sentence) -> str:
    """Return the German sentence."""
    if isinstance(tree.main, ClueClause):
        text = clue_clause(tree.main)
    elif tree.kind == "command":
        text = clause(tree.main, order="command")
    else:
        leads = tree.subordinate is not None and tree.subordinate_is_first
        starts_with_verb = leads or tree.front == ""
        order: Order = "first" if starts_with_verb else "second"
        text = clause(tree.main, order=order, front=tree.front, is_question=tree.kind == "question")
    if tree.subordinate is not None and tree.conjunction is not None:
        joined = f"{tree.conjunction.german} {_subordinate(tree.subordinate)}"
        text = f"{joined}, {text}" if tree.subordinate_is_first else f"{text}, {joined}"
    if tree.joined is not None:
        text = _join(text, tree)
    if tree.addressee is not None:
        name = weave(tree.addressee.german, tree.addressee.mark)
        text = f"{name}, {text}" if tree.addressee_is_first else f"{text}, {name}"
    return _finish(text, {"question": "?", "command": "!"}.get(tree.kind, "."))


def _join(text: str, tree: Sentence) -> str:
    second = tree.joined
    if isinstance(second, ClueClause):
        joined = clue_clause(second)
    else:
        assert second is not None, "the caller has checked"
        joined = clause(second, order="second" if tree.joined_keeps_subject else "elided")
        if not tree.joined_keeps_subject and isinstance(tree.main, Clause):
            joined = _share_auxiliary(tree.main, second, joined)
    return f"{text}{_JOINTS[tree.joint]} {joined}"


def _share_auxiliary(first: Clause, second: Clause, text: str) -> str:
    """Remove the second auxiliary if it equals the first: ich habe gekocht und gegessen."""
    before, after = verb_group(first), verb_group(second)
    is_shared = before.finite == after.finite and before.nonfinite and after.nonfinite
    return text.removeprefix(f"{weave(after.finite, second.mark)} ") if is_shared else text


def _finish(text: str, mark: str) -> str:
    text = text.replace(" ,", ",")
    while ",," in text:  # several clauses end here
        text = text.replace(",,", ",")
    text = text.rstrip(",")
    return text[0].upper() + text[1:] + mark


Order = Literal["second", "first", "last", "command", "elided"]


def clue_clause(tree: ClueClause) -> str:
    """Return a main clause with a predicate from the clues of the lexicon."""
    subject = phrase(tree.subject, "nominative")
    verb = weave(tree.clue.german[tree.is_past], tree.mark)
    return f"{subject.core}{subject.relative} {verb} {tree.clue.german_rest}"


def _subordinate(tree: Clause | ClueClause) -> str:
    if isinstance(tree, ClueClause):
        subject = phrase(tree.subject, "nominative")
        verb = weave(tree.clue.german[tree.is_past], tree.mark)
        return f"{subject.core}{subject.relative} {tree.clue.german_rest} {verb}"
    return clause(tree, order="last")


def clause(tree: Clause, *, order: Order, front: Slot = "subject", is_question: bool = False) -> str:
    """Return a clause with the finite verb in the place `order`; `front` is the slot that comes first."""
    if order == "first":
        front = ""
    verbs = _command_verbs(tree) if order == "command" else verb_group(tree, is_question=is_question)
    verbs = VerbGroup(*(weave(part, tree.mark) for part in verbs))
    lead = _slot(tree, front) if order in ("second", "last") and front else Phrase("")
    words, relative = _with_relative_apart(_fields(tree, front=front, order=order))
    if order == "last":
        words = [lead.core + lead.relative, *words, verbs.nonfinite, verbs.prefix + verbs.finite, relative]
    else:
        words = [lead.core + lead.relative, verbs.finite, *words, verbs.nonfinite, verbs.prefix, relative]
    return " ".join(word for word in (*words, _content(tree)) if word)


def _with_relative_apart(fields: list[Phrase]) -> tuple[list[str], str]:
    """Return the words of the fields, and the relative clause of the last phrase, which follows the verb."""
    last = len(fields) - 1
    while last >= 0 and fields[last].core in _ADVERBS:
        last -= 1
    words = [field.core if i == last else f"{field.core}{field.relative}" for i, field in enumerate(fields)]
    return words, fields[last].relative if last >= 0 else ""


def _content(tree: Clause) -> str:
    if tree.content is None:
        return ""
    inner = tree.content.clause
    if conjunction := _CONJUNCTIONS.get(tree.content.conjunction):
        return f", {conjunction} {_subordinate(inner)},"
    assert isinstance(inner, Clause), "a clue has no infinitive"
    words, relative = _with_relative_apart(_middle(inner, front="subject", is_command=False))
    opening = "um" if tree.content.conjunction == "in order to" else ""
    words = [opening, *words, weave(inner.verb.german.infinitive_with_zu, inner.mark), relative]
    return f", {' '.join(word for word in words if word)},"


def _fields(tree: Clause, *, front: Slot, order: Order) -> list[Phrase]:
    """Return subject and other phrases after the finite verb of a main clause, or after the subordinating word."""
    middle = _middle(tree, front=front, is_command=order == "command")
    if order == "elided" or (front == "subject" and order in ("second", "last")):
        return middle
    if order == "command":
        return [phrase(tree.subject, "nominative"), *middle] if person_of(tree.subject) == 5 else middle
    subject = phrase(tree.subject, "nominative")
    if tree.verb.german.reflexive and not any(isinstance(n, Pronoun) for n in (tree.subject, tree.accusative)):
        return [middle[0], subject, *middle[1:]]  # heute freut sich der Mann
    return [subject, *middle]


def _middle(tree: Clause, *, front: Slot, is_command: bool) -> list[Phrase]:
    """Return the phrases between the finite verb and the end, without the subject.

    The order is: pronouns and names, definite dative, time, indefinite dative, manner and place, accusative, and what
    the verb requires. A definite accusative precedes manner and place, and with nicht, nie, schon or gern also time.
    """
    accusative, negation, complement = _negated(tree)
    dative = None if front == "dative" else tree.dative
    accusative = None if front == "accusative" else accusative
    early = _early(tree, accusative, dative, is_command=is_command)
    if isinstance(accusative, Pronoun | Name):
        accusative = None
    datives = [] if dative is None or _is_definite(dative) else [phrase(dative, "dative")]
    accusatives = [] if accusative is None else [phrase(accusative, "accusative")]
    times = _times(tree, front=front)
    late = [Phrase(word) for word in (*negation, "gern" if tree.modal is LIKE_TO else "") if word]
    if tree.frequency is not None:
        (late if tree.frequency.german in _LATE_ADVERBS else times).append(Phrase(tree.frequency.german))
    manner = [] if tree.manner is None else [Phrase(tree.manner.german)]
    if tree.verb.possible_places and tree.place is not None and front != "place":
        manner.append(_slot(tree, "place"))  # a location, not a destination: im Garten ein Buch lesen
    if not _is_definite(accusative):
        objects = [*times, *late, *datives, *manner, *accusatives]
    elif late and not datives:
        objects = [*accusatives, *times, *late, *manner]
    else:
        objects = [*times, *late, *datives, *accusatives, *manner]
    return [*early, *objects, *_closing(tree, complement, front=front)]


def _early(tree: Clause, accusative: Nominal | None, dative: Nominal | None, *, is_command: bool) -> list[Phrase]:
    """Return pronouns, names, bitte and a definite dative, which come first."""
    early: list[Phrase] = []
    if isinstance(accusative, Pronoun):
        early.append(phrase(accusative, "accusative"))
    if reflexive := tree.verb.german.reflexive:  # er sieht es sich an
        early.append(Phrase(_REFLEXIVE[reflexive][person_of(tree.subject)]))
    if isinstance(dative, Pronoun | Name):
        early.append(phrase(dative, "dative"))
    if isinstance(accusative, Name):
        early.append(phrase(accusative, "accusative"))
    if is_command:
        early.append(Phrase("bitte"))
    if isinstance(dative, NounPhrase) and _is_definite(dative):
        early.append(phrase(dative, "dative"))
    return early


def _times(tree: Clause, *, front: Slot) -> list[Phrase]:
    times = [] if tree.time is None or front == "time" else [Phrase(tree.time.german)]
    if tree.tense == "progressive":
        times.append(Phrase("gerade"))
    return times


def _closing(tree: Clause, complement: Predicate | None, *, front: Slot) -> list[Phrase]:
    """Return prepositional object, predicate and the place that the verb requires, which come last."""
    fields = []
    if tree.oblique is not None and front != "oblique":
        fields.append(prepositional_phrase(tree.oblique))
    if complement is not None:
        fields.append(predicate(complement))
    if tree.place is not None and front != "place" and not tree.verb.possible_places:
        fields.append(_slot(tree, "place"))
    return fields


def _negated(tree: Clause) -> tuple[Nominal | None, tuple[str, ...], Predicate | None]:
    """Return accusative, negation and predicate after negating: "not a" is kein, any other "not" is nicht."""
    accusative, complement = tree.accusative, tree.predicate
    if tree.negation in ("", "never"):
        return accusative, ("nie",) if tree.negation else (), complement
    yet = "noch" if tree.negation == "not yet" else ""
    if isinstance(accusative, NounPhrase) and accusative.determiner in (A, BARE):
        return accusative._replace(determiner=NO), (yet,), complement
    if complement is not None and complement.nominal is not None and complement.nominal.determiner in (A, A_BARE):
        return accusative, (yet,), complement._replace(nominal=complement.nominal._replace(determiner=NO))
    return accusative, (yet, "nicht"), complement


def _is_definite(tree: Nominal | None) -> bool:
    if isinstance(tree, NounPhrase):
        return tree.determiner.is_definite
    return tree is not None


def _slot(tree: Clause, name: Slot) -> Phrase:
    if name == "subject":
        return phrase(tree.subject, "nominative")
    if name == "time":
        return Phrase(tree.time.german if tree.time is not None else "")
    if name in ("oblique", "place"):
        filled = tree.oblique if name == "oblique" else tree.place
        return (
            prepositional_phrase(filled)
            if isinstance(filled, PrepositionalPhrase)
            else Phrase(filled.german if filled is not None else "")
        )
    if name == "accusative":
        return phrase(tree.accusative, "accusative") if tree.accusative is not None else Phrase("")
    return phrase(tree.dative, "dative") if tree.dative is not None else Phrase("")


def verb_group(tree: Clause, *, is_question: bool = False) -> VerbGroup:
    """Return the verbs of a clause: the finite one, the one at the end, and the separable prefix."""
    person, verb = person_of(tree.subject), tree.verb.german
    if tree.modal is not None and tree.modal is not LIKE_TO:
        forms = tree.modal.past if tree.tense == "past" else tree.modal.present
        return VerbGroup(forms[person], verb.full_infinitive)
    if tree.is_passive:
        return _passive(tree, person)
    tense = tree.tense
    if tense == "past" and "state" not in tree.verb.flags and (is_question or _is_first_or_second_person(tree.subject)):
        tense = "perfect"
    if tense == "future":
        return VerbGroup(WERDEN.present[person], verb.full_infinitive)
    if tense in ("perfect", "pluperfect"):
        auxiliary = HABEN if verb.auxiliary == "haben" else SEIN
        forms = auxiliary.present if tense == "perfect" else auxiliary.past
        return VerbGroup(forms[person], verb.participle)
    simple: Forms = verb.past if tense == "past" else verb.present
    return VerbGroup(simple[person], prefix=verb.prefix)


def _passive(tree: Clause, person: int) -> VerbGroup:
    participle = tree.verb.german.participle
    if tree.tense == "perfect":
        return VerbGroup(SEIN.present[person], f"{participle} worden")
    if tree.tense == "future":
        return VerbGroup(WERDEN.present[person], f"{participle} werden")
    return VerbGroup((WERDEN.past if tree.tense == "past" else WERDEN.present)[person], participle)


def _command_verbs(tree: Clause) -> VerbGroup:
    return VerbGroup(tree.verb.german.imperative(person_of(tree.subject)), prefix=tree.verb.german.prefix)


def _is_first_or_second_person(subject: Nominal) -> bool:
    return isinstance(subject, Pronoun) and subject.english in ("I", "we", "you")


def person_of(subject: Nominal) -> int:
    """Return the number of the person: ich, du, er, wir, ihr, sie."""
    if isinstance(subject, Pronoun):
        return subject.person
    if isinstance(subject, RelativePronoun):
        return 5 if subject.agreement == "p" else 2
    return 5 if subject.is_plural else 2


def phrase(tree: Nominal, case: Case) -> Phrase:
    """Return a noun phrase, pronoun or name in a case, and its relative clause."""
    if isinstance(tree, Name):
        return Phrase(weave(tree.german, tree.mark))
    if isinstance(tree, Pronoun):
        return Phrase(weave(tree.german[("nominative", "accusative", "dative").index(case)], tree.mark))
    if isinstance(tree, RelativePronoun):
        is_denen = case == "dative" and tree.agreement == "p"
        return Phrase(weave("denen" if is_denen else ENDINGS["definite", case, tree.agreement], tree.mark))
    if tree.relative is None:
        return Phrase(noun_phrase(tree, case))
    if isinstance(tree.relative, ClueClause):
        inner = _subordinate(tree.relative)
    else:
        inner = clause(tree.relative, order="last", front=relative_slot(tree.relative))
    return Phrase(noun_phrase(tree, case), f", {inner},")


def prepositional_phrase(tree: PrepositionalPhrase) -> Phrase:
    """Return a preposition and its noun phrase in the case that the preposition governs."""
    inner = phrase(tree.nominal, tree.preposition.case)
    return Phrase(after_preposition(tree, inner.core), inner.relative)


def predicate(tree: Predicate) -> Phrase:
    """Return the words of a predicate with sein."""
    if tree.phrase is not None:
        return Phrase(tree.phrase.german)
    if tree.nominal is not None:
        return phrase(tree.nominal, "nominative")
    assert tree.adjective is not None, "a predicate has an adjective, a noun phrase or a phrase"
    if tree.than is None:
        return Phrase(tree.adjective.german)
    than = phrase(tree.than, "nominative")
    if tree.degree == "equal":
        return Phrase(f"so {tree.adjective.german} wie {than.core}", than.relative)
    return Phrase(f"{tree.adjective.german_comparative} als {than.core}", than.relative)
