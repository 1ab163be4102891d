"""German: endings and word order, compared with tables of a textbook and with laws over many trees."""

import re
from collections.abc import Iterator

import pytest

from demo_grammar import english, german
from demo_grammar.german_nouns import noun_form, noun_phrase
from demo_grammar.lexicon import Preposition, lexicon
from demo_grammar.tree import (
    ALL,
    BARE,
    EVERY,
    HE,
    IHR,
    MANY,
    NO,
    SHE,
    THE,
    THIS,
    A,
    Case,
    Clause,
    ClueClause,
    Content,
    Determiner,
    I,
    Name,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    RelativePronoun,
    Sentence,
)

CASES: tuple[Case, ...] = ("nominative", "accusative", "dative", "genitive")

# The paradigm of each gender as a textbook prints it: nominative, accusative, dative, genitive.
PARADIGMS = {
    (THE, "dog", False): ["der alte Hund", "den alten Hund", "dem alten Hund", "des alten Hundes"],
    (THE, "cat", False): ["die alte Katze", "die alte Katze", "der alten Katze", "der alten Katze"],
    (THE, "horse", False): ["das alte Pferd", "das alte Pferd", "dem alten Pferd", "des alten Pferdes"],
    (THE, "dog", True): ["die alten Hunde", "die alten Hunde", "den alten Hunden", "der alten Hunde"],
    (A, "dog", False): ["ein alter Hund", "einen alten Hund", "einem alten Hund", "eines alten Hundes"],
    (A, "cat", False): ["eine alte Katze", "eine alte Katze", "einer alten Katze", "einer alten Katze"],
    (A, "horse", False): ["ein altes Pferd", "ein altes Pferd", "einem alten Pferd", "eines alten Pferdes"],
    (NO, "dog", True): ["keine alten Hunde", "keine alten Hunde", "keinen alten Hunden", "keiner alten Hunde"],
    (BARE, "dog", True): ["alte Hunde", "alte Hunde", "alten Hunden", "alter Hunde"],
    (MANY, "dog", True): ["viele alte Hunde", "viele alte Hunde", "vielen alten Hunden", "vieler alter Hunde"],
    (ALL, "cat", True): ["alle alten Katzen", "alle alten Katzen", "allen alten Katzen", "aller alten Katzen"],
    (THIS, "horse", False): ["dieses alte Pferd", "dieses alte Pferd", "diesem alten Pferd", "dieses alten Pferdes"],
    (EVERY, "lion", False): ["jeder alte Löwe", "jeden alten Löwen", "jedem alten Löwen", "jedes alten Löwen"],
    (IHR.possessive, "cat", False): [
        "eure alte Katze",
        "eure alte Katze",
        "eurer alten Katze",
        "eurer alten Katze",
    ],
    (IHR.possessive, "dog", False): ["euer alter Hund", "euren alten Hund", "eurem alten Hund", "eures alten Hundes"],
}
STRONG = {
    "coffee": ["kalter Kaffee", "kalten Kaffee", "kaltem Kaffee", "kalten Kaffees"],
    "milk": ["kalte Milch", "kalte Milch", "kalter Milch", "kalter Milch"],
    "water": ["kaltes Wasser", "kaltes Wasser", "kaltem Wasser", "kalten Wassers"],
}
ARTICLES = {
    "der": {("nominative", "m"), ("dative", "f"), ("genitive", "f"), ("genitive", "p")},
    "die": {("nominative", "f"), ("accusative", "f"), ("nominative", "p"), ("accusative", "p")},
    "das": {("nominative", "n"), ("accusative", "n")},
    "den": {("accusative", "m"), ("dative", "p")},
    "dem": {("dative", "m"), ("dative", "n")},
    "des": {("genitive", "m"), ("genitive", "n")},
}


@pytest.mark.parametrize("key", PARADIGMS, ids=lambda key: f"{key[0].german}-{key[1]}-{key[2]}")
def test_paradigms(key: tuple[Determiner, str, bool]) -> None:
    determiner, noun, is_plural = key
    words = lexicon()
    phrase = NounPhrase(words.nouns[noun], determiner, is_plural, (words.adjectives["old"],))
    assert [noun_phrase(phrase, case) for case in CASES] == PARADIGMS[key]


@pytest.mark.parametrize("key", STRONG)
def test_adjectives_without_article_show_the_case(key: str) -> None:
    words = lexicon()
    phrase = NounPhrase(words.nouns[key], BARE, adjectives=(words.adjectives["cold"],))
    assert [noun_phrase(phrase, case) for case in CASES] == STRONG[key]


def test_every_noun_takes_the_article_of_its_gender_and_case() -> None:
    for noun in lexicon().nouns.values():
        for is_plural in {False, bool(noun.german_plural)}:
            for case in CASES:
                article, _, rest = noun_phrase(NounPhrase(noun, THE, is_plural), case).partition(" ")
                assert (case, "p" if is_plural else noun.gender) in ARTICLES[article]
                assert rest[0].isupper()
                if is_plural and case == "dative":
                    assert rest[-1] in "ns"


@pytest.mark.parametrize(
    ("preposition", "case", "noun", "text"),
    [
        ("in", "dative", "garden", "im Garten"),
        ("in", "accusative", "cinema", "ins Kino"),
        ("in", "accusative", "garden", "in den Garten"),
        ("an", "dative", "river", "am Fluss"),
        ("zu", "dative", "bank.money", "zur Bank"),
        ("zu", "dative", "station", "zum Bahnhof"),
        ("von", "dative", "woman", "von der Frau"),
        ("auf", "accusative", "roof", "auf das Dach"),
    ],
)
def test_prepositions_contract(preposition: str, case: str, noun: str, text: str) -> None:
    place = PrepositionalPhrase(Preposition("", preposition, case), NounPhrase(lexicon().nouns[noun]))  # type: ignore[arg-type]
    assert german.prepositional_phrase(place).core == text


def _clauses(tree: Sentence) -> Iterator[tuple[Clause, str]]:
    """Yield every clause of a sentence with its kind: main, subordinate, infinitive or relative."""
    parts = [(tree.main, "main"), (tree.subordinate, "subordinate"), (tree.joined, "main")]
    for part, kind in parts:
        if isinstance(part, Clause):
            yield from _inside(part, kind)


def _inside(tree: Clause, kind: str) -> Iterator[tuple[Clause, str]]:
    yield tree, kind
    if tree.content is not None and isinstance(tree.content.clause, Clause):
        yield from _inside(tree.content.clause, "infinitive" if "to" in tree.content.conjunction else "subordinate")
    for nominal in (tree.subject, tree.accusative):
        if isinstance(nominal, NounPhrase) and isinstance(nominal.relative, Clause):
            yield from _inside(nominal.relative, "relative")


def _forms(tree: Clause) -> set[str]:
    """Return the finite forms that the clause's person may have in any tense."""
    person = german.person_of(tree.subject)
    verbs = [lexicon().verbs[key].german for key in ("be", "have", "become")] + [tree.verb.german]
    found = {form for verb in verbs for form in (verb.present[person], verb.past[person])}
    if tree.modal is not None:
        found |= {tree.modal.present[person], tree.modal.past[person]}
    return found


def test_the_finite_verb_of_a_main_clause_is_second(trees: list[Sentence]) -> None:
    seen = 0
    for tree in trees:
        if tree.kind != "statement" or not isinstance(tree.main, Clause) or tree.subordinate_is_first:
            continue
        lead = german._slot(tree.main, tree.front)
        text = german.clause(tree.main, order="second", front=tree.front)
        assert text.startswith(lead.core + lead.relative)
        second = text.removeprefix(lead.core + lead.relative).split()[0]
        assert second in _forms(tree.main), text
        seen += 1
    assert seen > 1000


def test_the_finite_verb_of_a_subordinate_clause_is_last(trees: list[Sentence]) -> None:
    seen = 0
    for tree in trees:
        for clause, kind in _clauses(tree):
            if kind != "subordinate" or clause.content is not None:
                continue
            text = german.clause(clause, order="last")
            if "," in text:  # an object's relative clause follows the verb
                continue
            prefix = clause.verb.german.prefix
            last = text.split()[-1]
            assert last in _forms(clause) or last.removeprefix(prefix) in _forms(clause), text
            seen += 1
    assert seen > 300


def test_separable_prefixes_leave_their_verb_only_where_it_is_not_last(trees: list[Sentence]) -> None:
    seen = {"main": 0, "subordinate": 0}
    for tree in trees:
        for clause, kind in _clauses(tree):
            verb = clause.verb.german
            simple = clause.modal is None and clause.tense in ("present", "progressive", "past")
            if not verb.prefix or not simple or clause.is_passive or kind not in seen or clause.content is not None:
                continue
            group = german.verb_group(clause)
            if group.nonfinite:
                continue
            text = german.clause(clause, order="second" if kind == "main" else "last")
            if "," in text:  # an object's relative clause follows
                continue
            assert text.split()[-1] == (verb.prefix if kind == "main" else verb.prefix + group.finite), text
            seen[kind] += 1
    assert min(seen.values()) > 20


def test_subject_and_verb_agree(trees: list[Sentence]) -> None:
    persons = {"ich": 0, "du": 1, "er": 2, "es": 2, "wir": 3, "ihr": 4, "Sie": 5}
    for tree in trees:
        for clause, kind in _clauses(tree):
            if kind == "infinitive":
                continue
            subject = german.phrase(clause.subject, "nominative").core
            if subject in persons:
                assert german.person_of(clause.subject) == persons[subject]
            assert german.verb_group(clause).finite in _forms(clause)


def test_commas_are_single_and_never_at_the_end(trees: list[Sentence]) -> None:
    for tree in trees:
        text = german.sentence(tree)
        assert not re.search(r",,|, ,| ,|,[.?!]|  |\A | \Z|,[^ ]", text), text
        assert text[0].isupper()
        assert text[-1] in ".?!"


def test_every_conjunction_has_its_comma(trees: list[Sentence]) -> None:
    for tree in trees:
        for match in re.finditer(r"(\S+) (weil|dass|obwohl|nachdem|bevor|ob|aber)\b", german.sentence(tree)):
            assert match[1].endswith(","), german.sentence(tree)


def _all_nominals(tree: Sentence) -> Iterator[tuple[Nominal, Case]]:
    for clause, _ in _clauses(tree):
        yield clause.subject, "nominative"
        if clause.accusative is not None:
            yield clause.accusative, "accusative"
        if clause.dative is not None:
            yield clause.dative, "dative"
        for place in (clause.oblique, clause.place):
            if isinstance(place, PrepositionalPhrase):
                yield place.nominal, place.preposition.case


def test_articles_in_sentences_agree_with_their_nouns(trees: list[Sentence]) -> None:
    seen = 0
    for tree in trees:
        for nominal, case in _all_nominals(tree):
            if isinstance(nominal, NounPhrase) and nominal.determiner is THE and case != "nominative":
                article = german.phrase(nominal, case).core.split()[0]
                assert (case, nominal.agreement) in ARTICLES[article]
                seen += 1
    assert seen > 1000


def test_no_noun_is_lost(trees: list[Sentence]) -> None:
    for tree in trees:
        text = german.sentence(tree)
        spoken = english.sentence(tree)
        for nominal, case in _all_nominals(tree):
            if isinstance(nominal, NounPhrase):
                assert noun_form(nominal, case).lower() in text.lower(), (text, nominal.noun.german)
                form = nominal.noun.english_plural if nominal.is_plural else nominal.noun.english
                assert form.lower() in spoken.lower(), (spoken, form)


def test_relative_pronouns_agree_with_their_antecedents(trees: list[Sentence]) -> None:
    seen = 0
    forms = ARTICLES | {"denen": {("dative", "p")}, "dessen": {("genitive", "m"), ("genitive", "n")}}
    forms |= {"deren": {("genitive", "f"), ("genitive", "p")}}
    for tree in trees:
        for nominal, case in _all_nominals(tree):
            if isinstance(nominal, NounPhrase) and nominal.relative is not None:
                found = german.phrase(nominal, case)
                pronoun = next(word for word in found.relative.strip(", ").split() if word in forms)
                assert nominal.agreement in {agreement for _, agreement in forms[pronoun]}, found
                seen += 1
    assert seen > 200


def test_pronouns_take_the_gender_of_the_noun_they_stand_for(trees: list[Sentence]) -> None:
    seen = 0
    expected = {"m": "er", "f": "sie", "n": "es"}
    for tree in trees:
        subordinate = tree.subordinate
        if not isinstance(subordinate, Clause) or not isinstance(tree.main, Clause) or subordinate.predicate is None:
            continue
        pronoun, thing = subordinate.subject, tree.main.accusative
        if getattr(pronoun, "english", "") == "it" and isinstance(thing, NounPhrase):
            assert german.phrase(pronoun, "nominative").core == expected[thing.noun.gender]
            seen += 1
    assert seen > 20


def test_not_a_is_kein_and_any_other_not_is_nicht(trees: list[Sentence]) -> None:
    seen = {"kein": 0, "nicht": 0}
    for tree in trees:
        for clause, kind in _clauses(tree):
            if kind != "main" or clause.negation not in ("not", "not yet") or tree.kind != "statement":
                continue
            words = german.clause(clause, order="second").split()
            said = clause.predicate.nominal if clause.predicate is not None else None
            is_open = any(
                isinstance(phrase, NounPhrase) and phrase.determiner.english in ("a", "")
                for phrase in (clause.accusative, said)
            )
            assert ("nicht" in words) != is_open, words
            assert any(word.startswith("kein") for word in words) == is_open
            seen["kein" if is_open else "nicht"] += 1
    assert min(seen.values()) > 20


def test_a_clue_clause_has_both_word_orders() -> None:
    clue = next(clue for clue in lexicon().clues if clue.sense == "key.lock")
    subject = NounPhrase(lexicon().nouns["key.lock"])
    clue_clause = ClueClause(subject, clue, is_past=True)
    speaker = Name("Anna", "Anna", is_plural=False, is_female=True)
    says = Clause(speaker, lexicon().verbs["say"], content=Content("that", clue_clause))
    assert german.sentence(Sentence("statement", clue_clause)) == "Der Schlüssel öffnete die Tür des Kellers."
    assert german.sentence(Sentence("statement", says)) == "Anna sagt, dass der Schlüssel die Tür des Kellers öffnete."


def test_the_first_person_uses_the_perfect() -> None:
    bread = NounPhrase(lexicon().nouns["bread"])
    texts = [
        german.sentence(Sentence("statement", Clause(actor, lexicon().verbs["eat"], "past", accusative=bread)))
        for actor in (I, SHE)
    ]
    assert texts == ["Ich habe das Brot gegessen.", "Sie aß das Brot."]


@pytest.mark.parametrize(
    ("noun", "is_plural", "slot", "expected"),
    [
        ("man", False, "subject", "der Mann, der schläft,"),
        ("woman", False, "accusative", "die Frau, die er sieht,"),
        ("man", False, "accusative", "der Mann, den er sieht,"),
        ("child", False, "dative", "das Kind, dem er hilft,"),
        ("woman", False, "dative", "die Frau, der er hilft,"),
        ("man", True, "dative", "die Männer, denen er hilft,"),
        ("woman", True, "accusative", "die Frauen, die er sieht,"),
    ],
)
def test_relative_clauses(noun: str, is_plural: bool, slot: str, expected: str) -> None:
    verbs = lexicon().verbs
    phrase = NounPhrase(lexicon().nouns[noun], THE, is_plural)
    pronoun = RelativePronoun(phrase.agreement, is_person=True)
    relative = {
        "subject": Clause(pronoun, verbs["sleep"]),
        "accusative": Clause(HE, verbs["see"], accusative=pronoun),
        "dative": Clause(HE, verbs["help"], dative=pronoun),
    }[slot]
    found = german.phrase(phrase._replace(relative=relative), "nominative")
    assert found.core + found.relative == expected
