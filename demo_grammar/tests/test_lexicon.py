"""The lexicon is consistent, and an error names the line of a fault."""

import re

import pytest

from demo_grammar.lexicon import COLUMNS, lexicon, read_lexicon
from transduce.errors import DataError

HEADER = "\t".join(COLUMNS)
APPLE = "noun\tapple\tapple\tapples\tApfel\tm, Äpfel, Apfels\tfruit"


def test_it_has_six_hundred_entries_a_side() -> None:
    words = lexicon()
    english = {n.english for n in words.nouns.values()} | {a.english for a in words.adjectives.values()}
    english |= {f"{v.english.base} {v.english.particle}" for v in words.verbs.values()}
    german = {n.german for n in words.nouns.values()} | {a.german for a in words.adjectives.values()}
    german |= {v.german.full_infinitive for v in words.verbs.values()}
    for kind in words.words.values():
        english |= {word.english for word in kind}
        german |= {word.german for word in kind}
    assert len(english) >= 600
    assert len(german) >= 600


def test_german_nouns_are_capitalised_and_their_forms_related() -> None:
    unlaut = str.maketrans("äöüÄÖÜ", "aouAOU")
    for noun in lexicon().nouns.values():
        assert noun.german[0].isupper()
        for form in (noun.german_plural, noun.genitive, noun.weak):
            stem = noun.german.translate(unlaut)[: max(1, len(noun.german) - 2)]
            assert not form or form.translate(unlaut).startswith(stem), (noun.german, form)


def test_genitives_and_weak_forms_follow_the_gender() -> None:
    for noun in lexicon().nouns.values():
        if noun.gender == "f":
            assert noun.genitive == noun.weak == noun.german
        elif noun.weak != noun.german:
            assert noun.gender == "m"
            assert noun.weak.endswith("n")
        elif noun.genitive != noun.german:
            assert noun.genitive.endswith("s")


def test_participles_carry_their_prefix() -> None:
    unseparated = ("be", "ge", "er", "ver", "ent", "emp", "zer", "über")
    for verb in lexicon().verbs.values():
        german = verb.german
        assert german.participle.startswith(german.prefix)
        if german.prefix:
            rest = german.participle.removeprefix(german.prefix)
            assert rest.startswith("ge"), german
        elif not german.infinitive.startswith(unseparated) and not german.infinitive.endswith("ieren"):
            assert german.participle.startswith("ge"), german
        assert german.participle.endswith(("t", "en", "an")), german
        assert (german.past[0].endswith("te")) == german.participle.endswith("t") or german.infinitive in {
            "backen",
            "gehen",
            "stehen",
        }


def test_english_plurals_differ_from_their_singulars() -> None:
    for noun in lexicon().nouns.values():
        assert noun.english != noun.english_plural


def test_every_sense_of_an_ambiguous_noun_has_clues_of_its_own() -> None:
    words = lexicon()
    senses = {clue.sense for clue in words.clues}
    by_english: dict[str, set[str]] = {}
    for key in senses:
        by_english.setdefault(words.nouns[key].english, set()).add(words.nouns[key].german)
    assert len(by_english) >= 10
    assert all(len(german) == 2 for german in by_english.values())
    texts = [f"{clue.english[0]} {clue.english_rest}" for clue in words.clues]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["noun\tapple"], 2, "2 columns where 7 are needed"),
        ([APPLE, APPLE], 3, "used twice"),
        ([APPLE.replace("m, ", "x, ")], 2, "must be m, f or n"),
        ([APPLE.replace("apples", "-")], 2, "plural must be given in both"),
        ([APPLE.replace(", Apfels", "")], 2, "needs its genitive"),
        ([APPLE.replace("fruit", "fruit loc=in:unter")], 2, "preposition of place"),
        ([APPLE, "noun\tfruit\tfruit\tfruits\tFrucht\tf, Früchte\tfood"], 2, "'fruit' is also a noun"),
        (["verb\tgo\tgo\tgoes\tgehen\tgeht\ts=x"], 2, "four forms"),
        ([APPLE, "verb\tgo\tgo\ta, b, c, d\tgehen\ta, b, c, sein\ts=nobody"], 3, "no noun is of class 'nobody'"),
        ([APPLE, "verb\tgo\tgo\ta, b, c, d\tgehen\ta, b, c, werden\ts=fruit"], 3, "haben or sein"),
        ([APPLE, "adjective\tred\tred\t-\trot\t-\tfish rank=1 scale=x"], 3, "no noun is of class 'fish'"),
        (["clue\tx/1\tis red\twas\tist rot\twar\tx"], 2, "no noun 'x'"),
    ],
)
def test_faults_are_named_with_their_line(lines: list[str], line: int, message: str) -> None:
    with pytest.raises(DataError, match=rf"lexicon\.tsv:{line}: .*{re.escape(message)}"):
        read_lexicon("\n".join([HEADER, *lines, ""]))


def test_the_first_row_names_the_columns() -> None:
    with pytest.raises(DataError, match="must name the columns kind, key"):
        read_lexicon(APPLE)
