"""Labels: hand-worked sentences, and laws over many trees."""

from collections.abc import Iterator

from demo_grammar import english, german
from demo_grammar.german_nouns import noun_form
from demo_grammar.german_verbs import CAN
from demo_grammar.labels import constituents
from demo_grammar.lexicon import Preposition, lexicon
from demo_grammar.marks import mark, positions, unmarked, weave
from demo_grammar.tree import (
    BARE,
    ES,
    HE,
    IT,
    SIE,
    A,
    Case,
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
from transduce.demo import Constituent

N, V, ADJ = lexicon().nouns, lexicon().verbs, lexicon().adjectives
ANNA = Name("Anna", "Anna", is_plural=False, is_female=True)
CASES: tuple[Case, ...] = ("nominative", "accusative", "dative", "genitive")


def labelled(tree: Sentence) -> Iterator[tuple[Constituent, str, str]]:
    """Yield each labelled part with the English and the German words at its positions."""
    source, target = (
        [word.strip(",.?!") for word in text.split()] for text in (english.sentence(tree), german.sentence(tree))
    )
    for part in constituents(tree):
        spoken = " ".join(source[position] for position in part.english)
        yield part, spoken, " ".join(target[position] for position in part.german)


def described(tree: Sentence) -> set[tuple[object, ...]]:
    """Return each part as clause, role, number, gender and tense, and its words in both languages."""
    return {
        (part.clause, part.role, part.number, part.gender, part.tense, source, target)
        for part, source, target in labelled(tree)
    }


def test_a_relative_clause_is_a_clause_of_its_own() -> None:
    man = NounPhrase(N["man"], relative=Clause(RelativePronoun("m", is_person=True), V["sing"]))
    tree = Sentence("statement", Clause(I, V["know.person"], negation="not", accusative=man))
    assert german.sentence(tree) == "Ich kenne den Mann nicht, der singt."
    assert described(tree) == {
        (0, "verb", "singular", None, "present", "do know", "kenne"),
        (0, "subject", "singular", None, None, "I", "Ich"),
        (0, "accusative", "singular", "masculine", None, "man", "Mann"),
        (1, "verb", "singular", None, "present", "sings", "singt"),
        (1, "subject", "singular", "masculine", None, "who", "der"),
    }


def test_an_infinitive_has_no_tense_and_no_subject() -> None:
    boxes = NounPhrase(N["box"], is_plural=True)
    inner = Clause(ANNA, V["open"], accusative=boxes)
    tree = Sentence("statement", Clause(ANNA, V["try.doing"], "past", content=Content("to", inner)))
    assert described(tree) == {
        (0, "verb", "singular", None, "past", "tried", "versuchte"),
        (0, "subject", "singular", "feminine", None, "Anna", "Anna"),
        (1, "verb", None, None, None, "to open", "aufzumachen"),
        (1, "accusative", "plural", "feminine", None, "boxes", "Kisten"),
    }


def test_the_prefix_the_modal_and_cannot_belong_to_the_verb() -> None:
    opened = Sentence("statement", Clause(HE, V["open"], "past", accusative=NounPhrase(N["window"])))
    assert (0, "verb", "singular", None, "past", "opened", "machte auf") in described(opened)
    cannot = Sentence("statement", Clause(HE, V["open"], "present", CAN, negation="not"))
    assert (0, "verb", "singular", None, "present", "cannot open", "kann aufmachen") in described(cannot)


def test_a_shared_auxiliary_belongs_to_the_first_verb() -> None:
    first = Clause(I, V["buy"], "past", accusative=NounPhrase(N["bread"], BARE))
    second = Clause(I, V["eat"], "past", accusative=IT["n"])
    tree = Sentence("statement", first, joined=second, joint="and", joined_keeps_subject=False)
    assert german.sentence(tree) == "Ich habe Brot gekauft und es gegessen."
    assert described(tree) == {
        (0, "verb", "singular", None, "past", "bought", "habe gekauft"),
        (0, "subject", "singular", None, None, "I", "Ich"),
        (0, "accusative", "singular", "neuter", None, "bread", "Brot"),
        (1, "verb", "singular", None, "past", "ate", "gegessen"),
        (1, "accusative", "singular", "neuter", None, "it", "es"),
    }


def test_what_one_language_leaves_out_has_no_position_there() -> None:
    castle, garden = NounPhrase(N["castle"], A), NounPhrase(N["garden"])
    place = PrepositionalPhrase(Preposition("in", "in", "dative"), garden)
    tree = Sentence("existence", Clause(ES, V["there is"], accusative=castle, place=place), front="place")
    assert german.sentence(tree) == "Im Garten gibt es ein Schloss."
    assert described(tree) == {
        (0, "verb", "singular", None, "present", "is", "gibt"),
        (0, "subject", "singular", "neuter", None, "", "es"),
        (0, "accusative", "singular", "neuter", None, "castle", "Schloss"),
        (0, "place", "singular", "masculine", None, "garden", "Garten"),
    }


def test_owners_comparisons_and_addressees() -> None:
    door = NounPhrase(N["door"], owner=NounPhrase(N["house"]))
    tall = Predicate(ADJ["tall.thing"], "comparative", NounPhrase(N["tree"]))
    compared = Sentence("statement", Clause(door, V["be"], "past", predicate=tall))
    assert described(compared) == {
        (0, "verb", "singular", None, "past", "was", "war"),
        (0, "subject", "singular", "feminine", None, "door", "Tür"),
        (0, "owner", "singular", "neuter", None, "house", "Hauses"),
        (0, "comparison", "singular", "masculine", None, "tree", "Baum"),
    }
    weber = Name("Mrs Weber", "Frau Weber", is_plural=False, is_female=True)
    command = Sentence("command", Clause(SIE, V["call"], accusative=HE), addressee=weber)
    assert german.sentence(command) == "Frau Weber, rufen Sie ihn bitte an!"
    assert described(command) == {
        (0, "verb", None, None, None, "call", "rufen an"),
        (0, "subject", "plural", None, None, "", "Sie"),
        (0, "accusative", "singular", "masculine", None, "him", "ihn"),
        (0, "addressee", "singular", "feminine", None, "Mrs Weber", "Frau Weber"),
    }


def test_labels_of_nouns_are_those_of_the_lexicon(trees: list[Sentence]) -> None:
    forms: dict[str, set[tuple[str, str | None, str | None]]] = {}
    for noun in lexicon().nouns.values():
        gender = {"m": "masculine", "f": "feminine", "n": "neuter"}[noun.gender]
        for is_plural in {False, bool(noun.german_plural)}:
            number, spoken = ("plural", noun.english_plural) if is_plural else ("singular", noun.english)
            for case in CASES:
                form = noun_form(NounPhrase(noun, is_plural=is_plural), case)
                forms.setdefault(form, set()).add((spoken.lower(), number, gender))
    seen = 0
    for part, source, target in (found for tree in trees for found in labelled(tree)):
        if part.role not in ("verb", "addressee") and target in forms:
            word = source.removesuffix("'s").removesuffix("'").lower()
            assert (word, part.number, part.gender) in forms[target], (source, target)
            seen += 1
    assert seen > 5000


def test_a_mark_is_found_in_each_word_and_can_be_taken_out() -> None:
    text = f"I saw {weave('Mr Weber', mark(1))}, {weave('I', mark(0))}"
    assert unmarked(text) == "I saw Mr Weber, I"
    assert [positions(text, mark(number)) for number in (0, 1, 2)] == [(4,), (2, 3), ()]
    assert weave("Weber", "") == "Weber"
