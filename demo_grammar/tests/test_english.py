"""English: hand-worked sentences, and laws over many trees."""

import re

import pytest

from demo_grammar import english
from demo_grammar.german_verbs import CAN, HAVE_TO, LIKE_TO, MUST_NOT, WANT_TO, WOULD_LIKE, Modal
from demo_grammar.lexicon import lexicon
from demo_grammar.tree import (
    HE,
    THE,
    THEY,
    WHO,
    A,
    Clause,
    I,
    Negation,
    NounPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
    Tense,
)

WORDS = lexicon()
APPLE = NounPhrase(WORDS.nouns["apple"], A)


@pytest.mark.parametrize(
    ("following", "expected"),
    [
        ("apple", "an"),
        ("old", "an"),
        ("uniform", "a"),
        ("ugly", "an"),
        ("hour", "an"),
        ("house", "a"),
        ("European", "a"),
    ],
)
def test_a_and_an(following: str, expected: str) -> None:
    assert english.article(following) == expected


def test_every_word_of_the_lexicon_takes_the_article_that_a_list_of_exceptions_says() -> None:
    exceptions = {"uniform": "a", "euro": "a"}
    for word in [noun.english for noun in WORDS.nouns.values()] + [a.english for a in WORDS.adjectives.values()]:
        expected = exceptions.get(word, "an" if word[0].lower() in "aeiou" else "a")
        assert english.article(word) == expected, word


@pytest.mark.parametrize(
    ("actor", "tense", "modal", "negation", "expected"),
    [
        (HE, "present", None, "", "He eats an apple."),
        (I, "present", None, "", "I eat an apple."),
        (HE, "present", None, "not", "He does not eat an apple."),
        (THEY, "past", None, "not", "They did not eat an apple."),
        (HE, "past", None, "never", "He never ate an apple."),
        (I, "progressive", None, "", "I am eating an apple."),
        (HE, "perfect", None, "not yet", "He has not eaten an apple yet."),
        (THEY, "pluperfect", None, "", "They had eaten an apple."),
        (HE, "future", None, "not", "He will not eat an apple."),
        (HE, "present", CAN, "not", "He cannot eat an apple."),
        (HE, "past", CAN, "", "He could eat an apple."),
        (HE, "present", MUST_NOT, "not", "He must not eat an apple."),
        (HE, "present", HAVE_TO, "not", "He does not have to eat an apple."),
        (HE, "present", WANT_TO, "", "He wants to eat an apple."),
        (HE, "past", WANT_TO, "", "He wanted to eat an apple."),
        (HE, "present", WOULD_LIKE, "", "He would like to eat an apple."),
        (HE, "present", LIKE_TO, "", "He likes to eat an apple."),
    ],
)
def test_tenses(actor: Pronoun, tense: Tense, modal: Modal | None, negation: Negation, expected: str) -> None:
    tree = Clause(actor, WORDS.verbs["eat"], tense, modal, negation=negation, accusative=APPLE)
    assert english.sentence(Sentence("statement", tree)) == expected


@pytest.mark.parametrize(
    ("tree", "front", "expected"),
    [
        (Clause(HE, WORDS.verbs["eat"], "past", accusative=APPLE), "", "Did he eat an apple?"),
        (Clause(WHO, WORDS.verbs["eat"], "past", accusative=APPLE), "subject", "Who ate an apple?"),
        (Clause(HE, WORDS.verbs["help"], "past", dative=WHO), "dative", "Who did he help?"),
        (Clause(THEY, WORDS.verbs["eat"], "present", CAN, accusative=APPLE), "", "Can they eat an apple?"),
        (Clause(I, WORDS.verbs["be afraid of"], "present"), "", "Am I afraid?"),
    ],
)
def test_questions(tree: Clause, front: str, expected: str) -> None:
    assert english.sentence(Sentence("question", tree, front)) == expected  # type: ignore[arg-type]


def test_relative_pronouns() -> None:
    woman = NounPhrase(WORDS.nouns["woman"])
    pronoun = RelativePronoun("f", is_person=True)
    helped = woman._replace(relative=Clause(HE, WORDS.verbs["help"], "past", dative=pronoun))
    acting = woman._replace(relative=Clause(pronoun, WORDS.verbs["sleep"]))
    eaten = NounPhrase(WORDS.nouns["apple"])
    eaten = eaten._replace(relative=Clause(HE, WORDS.verbs["eat"], "past", accusative=RelativePronoun("m", False)))
    texts = [english.noun_phrase(phrase) for phrase in (helped, acting, eaten)]
    assert texts == ["the woman whom he helped", "the woman who sleeps", "the apple that he ate"]


def test_possessives_of_people_and_things() -> None:
    door = NounPhrase(WORDS.nouns["door"], owner=NounPhrase(WORDS.nouns["house"]))
    hat = NounPhrase(WORDS.nouns["hat"], owner=NounPhrase(WORDS.nouns["woman"]))
    boys = NounPhrase(WORDS.nouns["hat"], owner=NounPhrase(WORDS.nouns["boy"], THE, is_plural=True))
    assert [english.noun_phrase(phrase) for phrase in (door, hat, boys)] == [
        "the door of the house",
        "the woman's hat",
        "the boys' hat",
    ]


def test_sentences_are_tidy(trees: list[Sentence]) -> None:
    for tree in trees:
        text = english.sentence(tree)
        assert not re.search(r"  | [,.?!]|,,|,[^ ]|\bcan not\b|\ba [aeio]|\ban [^aeiouh]", text), text
        assert text[0].isupper()
        assert text[-1] in ".?!"
        assert text.isascii() or "ü" in text
