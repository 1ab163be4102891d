"""Glossaries: which terms are found, what becomes of them, and how a search's outputs are chosen among."""

from pathlib import Path

import pytest

from transduce.decoding.hypothesis import Hypothesis
from transduce.errors import DataError
from transduce.translator import Glossary, read_glossary
from transduce.translator.terminology import count_terms

TERMS = (("dog", "Köter"), ("hot dog", "Würstchen"), ("C++", "C++"), ("犬", "dog"))


def test_whole_words_are_found_whatever_their_case_and_longer_terms_first() -> None:
    glossary = Glossary(TERMS)
    assert glossary.wanted("Dog, a hot  dog, dogs, hotdog, C++! C++") == ["Köter", "Würstchen", "C++", "C++"]
    assert glossary.wanted("子犬です") == ["dog"]
    assert Glossary(()).wanted("dog") == []


def test_what_is_inside_of_a_placeholder_is_no_term() -> None:
    assert Glossary(TERMS).wanted("the dog at https://dog.example/dog and <b>dog</b>") == ["Köter", "Köter"]


def test_preferred_terms_choose_among_hypotheses_and_scores_decide_between_equals() -> None:
    texts: dict[tuple[int, ...], str] = {(1,): "der Hund", (2,): "der Köter", (3,): "ein Köter", (4,): "Köter Köter"}
    hypotheses = [Hypothesis(tokens, -1.0, -float(rank), is_finished=True) for rank, tokens in enumerate(texts)]

    def order(text: str, glossary: Glossary) -> list[int]:
        return [own.tokens[0] for own in glossary.prefer(hypotheses, text, decode=lambda ids: texts[tuple(ids)])]

    assert order("the dog", Glossary(TERMS, "preferred")) == [2, 3, 4, 1]
    assert order("dog dog", Glossary(TERMS, "preferred")) == [4, 2, 3, 1]
    assert order("the cat", Glossary(TERMS, "preferred")) == [1, 2, 3, 4]


def test_absent_terms_are_those_wanted_and_not_there() -> None:
    glossary = Glossary(TERMS)
    assert glossary.absent("a dog, a dog, a hot dog", "ein Köter") == ["Köter", "Würstchen"]
    assert glossary.absent("a cat", "") == []
    assert glossary.lost("a dog", "ein Hund") == ["Köter"]
    assert Glossary(TERMS, "preferred").lost("a dog", "ein Hund") == []


def test_appearing_counts_each_wanted_term_as_often_as_it_is_there() -> None:
    assert count_terms(["Köter", "Köter", "C++"], "KÖTER, Köterin") == 1
    assert count_terms(["Köter"], "Köter Köter") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog\tHund\nDog\tKöter\n", r"x\.tsv:2: 'Dog' is translated as 'Köter' here and as 'Hund' before"),
        ("dog\t\n", r"x\.tsv:1: a term or its translation is missing"),
        ("dog\t\u00ad\n", r"x\.tsv:1: a term or its translation is missing"),  # a soft hyphen is nothing
        ("\n", "holds no terms"),
    ],
)
def test_what_is_wrong_with_a_glossary_is_told(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "x.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_glossary(tmp_path / "x.tsv")


def test_a_glossary_is_read_from_a_table(tmp_path: Path) -> None:
    # The u and its dots are two characters here, and one in what a model writes.
    (tmp_path / "x.tsv").write_text("dog\tHund\n\nhot  dog\tWu\u0308rstchen\n", encoding="utf-8")
    assert read_glossary(tmp_path / "x.tsv").terms == (("dog", "Hund"), ("hot dog", "Würstchen"))
