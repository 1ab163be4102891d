"""Trees of noun phrases, clauses and sentences: the meaning of a sentence pair, without words' forms and order.

`english` and `german` turn one tree into a sentence each. A noun has a gender, a noun phrase a number and a determiner,
a pronoun a person; the slot of a phrase in its clause decides the case. `marks` explains the field `mark`.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from demo_grammar.german_verbs import Modal
from demo_grammar.lexicon import Adjective, Clue, Noun, Preposition, Verb, Word

Case = Literal["nominative", "accusative", "dative", "genitive"]
Tense = Literal["present", "progressive", "past", "perfect", "pluperfect", "future"]
Negation = Literal["", "not", "not yet", "never"]
Slot = Literal["subject", "accusative", "dative", "oblique", "place", "time", ""]
Declension = Literal["weak", "mixed", "strong"]


class Determiner(NamedTuple):
    """An article, possessive, numeral or quantifier, and how German inflects it and the adjectives after it.

    `pattern`: "definite" is der itself; "der" and "ein" have the endings of these articles; "viel" has the endings of
    der, but adjectives after it have strong endings; "" has no endings.
    """

    english: str
    english_plural: str
    german: str
    pattern: Literal["definite", "der", "ein", "viel", ""]
    is_definite: bool = True

    @property
    def declension(self) -> Declension:
        """The set of endings of an adjective after this determiner."""
        if self.pattern in ("definite", "der"):
            return "weak"
        return "mixed" if self.pattern == "ein" else "strong"


THE = Determiner("the", "the", "d", "definite")
THE_BARE = Determiner("the", "the", "", "", is_definite=False)  # she plays the piano: sie spielt Klavier
A = Determiner("a", "", "ein", "ein", is_definite=False)
A_BARE = Determiner("a", "", "", "", is_definite=False)  # she is a doctor: sie ist Ärztin
NO = Determiner("no", "no", "kein", "ein", is_definite=False)
BARE = Determiner("", "", "", "", is_definite=False)
THIS = Determiner("this", "these", "dies", "der")
EVERY = Determiner("every", "", "jed", "der", is_definite=False)
WHICH = Determiner("which", "which", "welch", "der")
ALL = Determiner("", "all", "all", "der")
MANY = Determiner("", "many", "viel", "viel", is_definite=False)
SOME = Determiner("", "some", "einig", "viel", is_definite=False)
HOW_MANY = Determiner("", "how many", "wie viel", "viel", is_definite=False)


class Pronoun(NamedTuple):
    """A pronoun. `person` is 0 to 5 for ich, du, er, wir, ihr, sie; `agreement` is 0 for I, 1 for he, 2 for they."""

    english: str
    english_object: str
    german: tuple[str, str, str]  # nominative, accusative, dative
    person: int
    agreement: Literal[0, 1, 2]
    possessive: Determiner
    mark: str = ""


def _possessive(english: str, german: str) -> Determiner:
    return Determiner(english, english, german, "ein")


I = Pronoun("I", "me", ("ich", "mich", "mir"), 0, 0, _possessive("my", "mein"))  # noqa: E741 - the English word
DU = Pronoun("you", "you", ("du", "dich", "dir"), 1, 2, _possessive("your", "dein"))
HE = Pronoun("he", "him", ("er", "ihn", "ihm"), 2, 1, _possessive("his", "sein"))
SHE = Pronoun("she", "her", ("sie", "sie", "ihr"), 2, 1, _possessive("her", "ihr"))
WE = Pronoun("we", "us", ("wir", "uns", "uns"), 3, 2, _possessive("our", "unser"))
IHR = Pronoun("you", "you", ("ihr", "euch", "euch"), 4, 2, _possessive("your", "euer"))
THEY = Pronoun("they", "them", ("sie", "sie", "ihnen"), 5, 2, _possessive("their", "ihr"))
SIE = Pronoun("you", "you", ("Sie", "Sie", "Ihnen"), 5, 2, _possessive("your", "Ihr"))
IT = {  # by the gender of the noun that "it" refers to
    "m": Pronoun("it", "it", ("er", "ihn", "ihm"), 2, 1, _possessive("its", "sein")),
    "f": Pronoun("it", "it", ("sie", "sie", "ihr"), 2, 1, _possessive("its", "ihr")),
    "n": Pronoun("it", "it", ("es", "es", "ihm"), 2, 1, _possessive("its", "sein")),
}
ES = IT["n"]
WHO = Pronoun("who", "who", ("wer", "wen", "wem"), 2, 1, BARE)
WHAT = Pronoun("what", "what", ("was", "was", "was"), 2, 1, BARE)
NOBODY = Pronoun("nobody", "nobody", ("niemand", "niemanden", "niemandem"), 2, 1, BARE)


class Name(NamedTuple):
    """A name of one or more people, or of a city: Anna, Anna and Paul, Mr Weber, Berlin."""

    english: str
    german: str
    is_plural: bool
    is_female: bool
    mark: str = ""


class RelativePronoun(NamedTuple):
    """A relative pronoun, which agrees with its antecedent: who, whom, that; der, den, dem."""

    agreement: Literal["m", "f", "n", "p"]
    is_person: bool
    mark: str = ""


class NounPhrase(NamedTuple):
    """A noun with determiner, number, adjectives, owner and relative clause."""

    noun: Noun
    determiner: Determiner = THE
    is_plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    owner: "NounPhrase | None" = None
    relative: "Clause | ClueClause | None" = None
    mark: str = ""

    @property
    def agreement(self) -> Literal["m", "f", "n", "p"]:
        """The gender in the singular, "p" in the plural, which has one form for all genders."""
        return "p" if self.is_plural else self.noun.gender


Nominal: TypeAlias = NounPhrase | Pronoun | Name | RelativePronoun


class PrepositionalPhrase(NamedTuple):
    """A preposition with its noun phrase: a place, a destination, or the object of a verb."""

    preposition: Preposition
    nominal: Nominal


class Predicate(NamedTuple):
    """The complement of "to be": an adjective with or without comparison, a noun phrase, or a phrase such as an age."""

    adjective: Adjective | None = None
    degree: Literal["positive", "comparative", "equal"] = "positive"
    than: Nominal | None = None
    nominal: NounPhrase | None = None
    phrase: Word | None = None


class ClueClause(NamedTuple):
    """A clause with a clue of the lexicon as predicate, which shows the sense of its ambiguous subject."""

    subject: Nominal
    clue: Clue
    is_past: bool
    mark: str = ""


class Content(NamedTuple):
    """A clause as the object of a verb, with "that", "whether" or "to", or as its purpose."""

    conjunction: Literal["that", "whether", "to", "in order to"]
    clause: "Clause | ClueClause"


class Clause(NamedTuple):
    """A verb with its subject, objects and adverbials in slots; each language has its own word order."""

    subject: Nominal
    verb: Verb
    tense: Tense = "present"
    modal: Modal | None = None
    is_passive: bool = False
    negation: Negation = ""
    accusative: Nominal | None = None
    dative: Nominal | None = None
    oblique: PrepositionalPhrase | None = None
    predicate: Predicate | None = None
    time: Word | None = None
    frequency: Word | None = None
    manner: Word | None = None
    place: PrepositionalPhrase | Word | None = None
    content: Content | None = None
    mark: str = ""


class Sentence(NamedTuple):
    """One or two clauses, how they are joined, and which slot of the main clause comes first."""

    kind: Literal["statement", "question", "command", "existence"]
    main: Clause | ClueClause
    front: Slot = "subject"
    conjunction: Word | None = None
    subordinate: Clause | ClueClause | None = None
    subordinate_is_first: bool = False
    joined: Clause | ClueClause | None = None  # a second main clause, after `joint`
    joint: Literal["but", "and"] = "and"
    joined_keeps_subject: bool = True
    addressee: Name | None = None
    addressee_is_first: bool = True


def nominals(tree: Sentence) -> Iterator[Nominal]:
    """Yield every noun phrase, pronoun and name of a sentence, nested ones too."""
    for part in (tree.main, tree.subordinate, tree.joined):
        if part is not None:
            yield from _nominals_of(part)


def _nominals_of(tree: Clause | ClueClause) -> Iterator[Nominal]:
    found: list[Nominal | None] = [tree.subject]
    if isinstance(tree, Clause):
        found += [tree.accusative, tree.dative]
        found += [place.nominal for place in (tree.oblique, tree.place) if isinstance(place, PrepositionalPhrase)]
        if tree.predicate is not None:
            found += [tree.predicate.nominal, tree.predicate.than]
        if tree.content is not None:
            yield from _nominals_of(tree.content.clause)
    for nominal in found:
        while nominal is not None:
            yield nominal
            if not isinstance(nominal, NounPhrase):
                break
            if nominal.relative is not None:
                yield from _nominals_of(nominal.relative)
            nominal = nominal.owner
