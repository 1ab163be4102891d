"""Whole sentences worked out by hand, one for each difficulty of the translation."""

import pytest

from demo_grammar import english, german
from demo_grammar.german_verbs import CAN, HAVE_TO, LIKE_TO, MUST, MUST_NOT
from demo_grammar.lexicon import Preposition, Word, lexicon
from demo_grammar.tree import (
    A_BARE,
    BARE,
    DU,
    HE,
    IHR,
    IT,
    SHE,
    SIE,
    THE_BARE,
    THEY,
    THIS,
    WE,
    WHO,
    A,
    Clause,
    Content,
    I,
    Name,
    NounPhrase,
    Predicate,
    PrepositionalPhrase,
    RelativePronoun,
    Sentence,
)

N, V, ADJ = lexicon().nouns, lexicon().verbs, lexicon().adjectives
ANNA = Name("Anna", "Anna", is_plural=False, is_female=True)
YESTERDAY = Word("", "yesterday", "gestern", frozenset(), "")
ALREADY = Word("", "already", "schon", frozenset(), "")
BECAUSE = next(word for word in lexicon().words["conjunction"] if word.key == "because")
WHEN = next(word for word in lexicon().words["conjunction"] if word.key == "when.once")


def the(noun: str, *adjectives: str) -> NounPhrase:
    return NounPhrase(N[noun], adjectives=tuple(ADJ[key] for key in adjectives))


def a(noun: str, *adjectives: str) -> NounPhrase:
    return the(noun, *adjectives)._replace(determiner=A)


IN_GARDEN = PrepositionalPhrase(Preposition("in", "in", "dative"), the("garden"))
ON_TABLE = PrepositionalPhrase(Preposition("on", "auf", "accusative"), the("table"))
FOR_BUS = PrepositionalPhrase(Preposition("for", "auf", "accusative"), the("bus"))
BY_TEACHER = PrepositionalPhrase(Preposition("by", "von", "dative"), the("teacher"))

STATEMENTS = [
    (Clause(HE, V["help"], dative=SHE), "He helps her.", "Er hilft ihr."),
    (Clause(HE, V["see"], accusative=SHE), "He sees her.", "Er sieht sie."),
    (
        Clause(HE, V["give"], "past", dative=the("child"), accusative=a("apple"), time=YESTERDAY),
        "He gave the child an apple yesterday.",
        "Er gab dem Kind gestern einen Apfel.",
    ),
    (
        Clause(HE, V["give"], "past", dative=a("child"), accusative=the("apple"), time=YESTERDAY),
        "He gave a child the apple yesterday.",
        "Er gab gestern einem Kind den Apfel.",
    ),
    (
        Clause(SHE, V["show"], "perfect", dative=a("child"), accusative=the("book"), frequency=ALREADY),
        "She has already shown a child the book.",
        "Sie hat schon einem Kind das Buch gezeigt.",
    ),
    (
        Clause(SHE, V["show"], "perfect", dative=the("child"), accusative=the("book"), frequency=ALREADY),
        "She has already shown the child the book.",
        "Sie hat dem Kind das Buch schon gezeigt.",
    ),
    (
        Clause(SHE, V["open"], "past", accusative=the("window")),
        "She opened the window.",
        "Sie machte das Fenster auf.",
    ),
    (
        Clause(SHE, V["open"], "perfect", accusative=the("window"), negation="not yet"),
        "She has not opened the window yet.",
        "Sie hat das Fenster noch nicht aufgemacht.",
    ),
    (
        Clause(
            I, V["look forward to"], oblique=PrepositionalPhrase(Preposition("to", "auf", "accusative"), the("concert"))
        ),
        "I look forward to the concert.",
        "Ich freue mich auf das Konzert.",
    ),
    (
        Clause(WE, V["watch.film"], "past", accusative=the("film")),
        "We watched the film.",
        "Wir haben uns den Film angesehen.",
    ),
    (
        Clause(I, V["watch.film"], "past", accusative=the("film")),
        "I watched the film.",
        "Ich habe mir den Film angesehen.",
    ),
    (
        Clause(
            I,
            V["know.person"],
            negation="not",
            accusative=the("man")._replace(relative=Clause(RelativePronoun("m", is_person=True), V["sing"])),
        ),
        "I do not know the man who sings.",
        "Ich kenne den Mann nicht, der singt.",
    ),
    (
        Clause(
            SHE,
            V["live"],
            place=PrepositionalPhrase(
                Preposition("in", "in", "dative"),
                the("house")._replace(
                    relative=Clause(HE, V["build"], "past", accusative=RelativePronoun("n", is_person=False))
                ),
            ),
        ),
        "She lives in the house that he built.",
        "Sie wohnt in dem Haus, das er baute.",
    ),
    (Clause(HE, V["watch.film"], accusative=IT["m"]), "He watches it.", "Er sieht ihn sich an."),
    (
        Clause(SHE, V["wait for"], "present", negation="not", oblique=FOR_BUS),
        "She does not wait for the bus.",
        "Sie wartet nicht auf den Bus.",
    ),
    (
        Clause(HE, V["put.flat"], "past", accusative=the("book"), place=ON_TABLE),
        "He put the book on the table.",
        "Er legte das Buch auf den Tisch.",
    ),
    (
        Clause(HE, V["put.upright"], "past", accusative=the("vase"), place=ON_TABLE),
        "He put the vase on the table.",
        "Er stellte die Vase auf den Tisch.",
    ),
    (
        Clause(HE, V["read"], "past", accusative=a("book"), place=IN_GARDEN),
        "He read a book in the garden.",
        "Er las im Garten ein Buch.",
    ),
    (
        Clause(HE, V["read"], "past", accusative=the("book"), place=IN_GARDEN),
        "He read the book in the garden.",
        "Er las das Buch im Garten.",
    ),
    (
        Clause(THEY, V["have"], accusative=a("dog"), negation="not"),
        "They do not have a dog.",
        "Sie haben keinen Hund.",
    ),
    (
        Clause(the("dog"), V["eat.animal"], accusative=the("meat")),
        "The dog eats the meat.",
        "Der Hund frisst das Fleisch.",
    ),
    (
        Clause(SHE, V["play.music"], accusative=NounPhrase(N["violin"], THE_BARE)),
        "She plays the violin.",
        "Sie spielt Geige.",
    ),
    (
        Clause(SHE, V["play.music"], "present", LIKE_TO, accusative=NounPhrase(N["violin"], THE_BARE)),
        "She likes to play the violin.",
        "Sie spielt gern Geige.",
    ),
    (
        Clause(SHE, V["be"], predicate=Predicate(nominal=NounPhrase(N["doctor.f"], A_BARE))),
        "She is a doctor.",
        "Sie ist Ärztin.",
    ),
    (
        Clause(HE, V["be"], negation="not", predicate=Predicate(nominal=NounPhrase(N["doctor"], A_BARE))),
        "He is not a doctor.",
        "Er ist kein Arzt.",
    ),
    (Clause(HE, V["sing"], "present", MUST), "He must sing.", "Er muss singen."),
    (Clause(HE, V["sing"], "present", MUST_NOT, negation="not"), "He must not sing.", "Er darf nicht singen."),
    (Clause(HE, V["sing"], "present", HAVE_TO, negation="not"), "He does not have to sing.", "Er muss nicht singen."),
    (
        Clause(the("house"), V["build"], "perfect", is_passive=True, oblique=BY_TEACHER),
        "The house has been built by the teacher.",
        "Das Haus ist vom Lehrer gebaut worden.",
    ),
    (
        Clause(ANNA, V["drive"], "past", content=Content("in order to", Clause(ANNA, V["buy"], accusative=a("car")))),
        "Anna drove to buy a car.",
        "Anna fuhr, um ein Auto zu kaufen.",
    ),
    (
        Clause(ANNA, V["try.doing"], "past", content=Content("to", Clause(ANNA, V["open"], accusative=a("box")))),
        "Anna tried to open a box.",
        "Anna versuchte, eine Kiste aufzumachen.",
    ),
    (
        Clause(the("tower"), V["be"], predicate=Predicate(ADJ["tall.thing"], "comparative", the("tree"))),
        "The tower is taller than the tree.",
        "Der Turm ist höher als der Baum.",
    ),
]


@pytest.mark.parametrize(("tree", "source", "target"), STATEMENTS, ids=[source for _, source, _ in STATEMENTS])
def test_statements(tree: Clause, source: str, target: str) -> None:
    sentence = Sentence("statement", tree)
    assert (english.sentence(sentence), german.sentence(sentence)) == (source, target)


LAMP = a("lamp")
OTHERS = [
    (
        Sentence("statement", Clause(the("man"), V["buy"], "past", accusative=LAMP, time=YESTERDAY), front="time"),
        "Yesterday the man bought a lamp.",
        "Gestern kaufte der Mann eine Lampe.",
    ),
    (
        Sentence(
            "statement",
            Clause(the("man"), V["buy"], "past", accusative=LAMP),
            conjunction=BECAUSE,
            subordinate=Clause(IT["f"], V["be"], "past", predicate=Predicate(ADJ["cheap"])),
        ),
        "The man bought a lamp because it was cheap.",
        "Der Mann kaufte eine Lampe, weil sie billig war.",
    ),
    (
        Sentence(
            "statement",
            Clause(SHE, V["get up"], "past"),
            conjunction=WHEN,
            subordinate=Clause(the("phone"), V["ring"], "past"),
            subordinate_is_first=True,
        ),
        "When the phone rang, she got up.",
        "Als das Telefon klingelte, stand sie auf.",
    ),
    (
        Sentence(
            "statement",
            Clause(I, V["read"], "perfect", accusative=the("book")._replace(determiner=THIS)),
            front="accusative",
        ),
        "This book I have read.",
        "Dieses Buch habe ich gelesen.",
    ),
    (
        Sentence("question", Clause(the("man"), V["look forward to"]), front=""),
        "Does the man look forward?",
        "Freut sich der Mann?",
    ),
    (
        Sentence("question", Clause(SHE, V["help"], "past", dative=WHO), front="dative"),
        "Who did she help?",
        "Wem hat sie geholfen?",
    ),
    (
        Sentence(
            "question",
            Clause(DU, V["help"], "present", CAN, dative=I),
            front="",
            addressee=ANNA,
            addressee_is_first=False,
        ),
        "Can you help me, Anna?",
        "Kannst du mir helfen, Anna?",
    ),
    (
        Sentence(
            "question",
            Clause(SIE, V["help"], "present", CAN, dative=I),
            front="",
            addressee=Name("Mrs Weber", "Frau Weber", is_plural=False, is_female=True),
        ),
        "Mrs Weber, can you help me?",
        "Frau Weber, können Sie mir helfen?",
    ),
    (
        Sentence(
            "command", Clause(IHR, V["open"], accusative=the("door")), addressee=Name("children", "Kinder", True, False)
        ),
        "Children, please open the door!",
        "Kinder, macht bitte die Tür auf!",
    ),
    (
        Sentence("command", Clause(SIE, V["call"], accusative=HE), addressee=ANNA),
        "Anna, please call him!",
        "Anna, rufen Sie ihn bitte an!",
    ),
    (
        Sentence(
            "existence",
            Clause(a("book"), V["lie"], place=PrepositionalPhrase(Preposition("on", "auf", "dative"), the("table"))),
            front="place",
        ),
        "There is a book on the table.",
        "Auf dem Tisch liegt ein Buch.",
    ),
    (
        Sentence("existence", Clause(IT["n"], V["there is"], accusative=a("castle"), place=IN_GARDEN), front="place"),
        "There is a castle in the garden.",
        "Im Garten gibt es ein Schloss.",
    ),
    (
        Sentence(
            "statement",
            Clause(I, V["buy"], "past", accusative=NounPhrase(N["bread"], BARE)),
            joined=Clause(I, V["eat"], "past", accusative=IT["n"]),
            joint="and",
            joined_keeps_subject=False,
        ),
        "I bought bread and ate it.",
        "Ich habe Brot gekauft und es gegessen.",
    ),
]


@pytest.mark.parametrize(("tree", "source", "target"), OTHERS, ids=[source for _, source, _ in OTHERS])
def test_other_sentences(tree: Sentence, source: str, target: str) -> None:
    assert (english.sentence(tree), german.sentence(tree)) == (source, target)
