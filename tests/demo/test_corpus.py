"""The bundled corpus: sizes, splits without overlap, files, and labels that fit the words that they point at."""

import re
from pathlib import Path
from typing import get_args

import pytest

from transduce import demo
from transduce.demo.corpus import LabelledSplit
from transduce.errors import DataError

SPLITS: tuple[LabelledSplit, ...] = get_args(LabelledSplit)


@pytest.fixture(scope="module")
def whole() -> demo.CorpusSplits:
    return demo.corpus(pairs=60_000)


def test_every_split_has_the_size_asked_for(whole: demo.CorpusSplits) -> None:
    assert [len(split) for split in whole] == [60_000, 500, 500, 500, 500]
    assert [len(split) for split in demo.corpus(pairs=7, held_out=3)] == [7, 3, 3, 3, 3]
    assert demo.corpus(pairs=0, held_out=0) == ([], [], [], [], [])


def test_a_smaller_corpus_is_the_beginning_of_a_larger_one(whole: demo.CorpusSplits) -> None:
    for shorter, longer in zip(demo.corpus(pairs=50, held_out=3), whole, strict=True):
        assert longer[: len(shorter)] == shorter


@pytest.mark.parametrize(
    ("pairs", "held_out", "message"),
    [(60_001, 500, "60,000 pairs in train, not 60,001"), (1, 501, "500 pairs in valid, not 501")],
)
def test_more_than_there_is_is_refused(pairs: int, held_out: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        demo.corpus(pairs=pairs, held_out=held_out)


def test_no_sentence_is_in_two_splits_or_twice_in_one(whole: demo.CorpusSplits) -> None:
    for side in (0, 1):
        sentences = [pair[side] for split in whole for pair in split]
        assert len(sentences) == len(set(sentences))


def test_long_sentences_are_longer_than_any_in_training(whole: demo.CorpusSplits) -> None:
    for side in (0, 1):
        longest = max(len(pair[side].split()) for pair in whole.train)
        assert min(len(pair[side].split()) for pair in whole.test_long) > longest


def test_files_hold_the_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    demo.write_corpus(folder, pairs=40, held_out=4)
    corpus = demo.corpus(pairs=40, held_out=4)._asdict()
    assert {path.name for path in folder.iterdir()} == {f"{split}.tsv" for split in corpus}
    for split, pairs in corpus.items():
        content = (folder / f"{split}.tsv").read_bytes().decode("utf-8")
        assert content.endswith("\n")
        assert "\r" not in content
        assert [tuple(line.split("\t")) for line in content.split("\n")[:-1]] == pairs


@pytest.mark.parametrize("split", SPLITS)
def test_labels_point_at_words_and_no_word_belongs_to_two(whole: demo.CorpusSplits, split: LabelledSplit) -> None:
    sentences = demo.labels(split)
    assert len(sentences) == 500
    for pair, constituents in zip(getattr(whole, split), sentences, strict=True):
        for side, positions in enumerate(("english", "german")):
            labelled = [position for part in constituents for position in getattr(part, positions)]
            assert len(labelled) == len(set(labelled))
            assert set(labelled) <= set(range(len(pair[side].split())))
        assert all(part.german for part in constituents)


@pytest.mark.parametrize("split", SPLITS)
def test_every_clause_has_one_verb_that_agrees_with_its_subject(split: LabelledSplit) -> None:
    for constituents in demo.labels(split):
        clauses = sorted({part.clause for part in constituents})
        assert clauses == list(range(len(clauses)))
        for number in clauses:
            [verb] = [part for part in constituents if (part.clause, part.role) == (number, "verb")]
            subjects = [part for part in constituents if (part.clause, part.role) == (number, "subject")]
            assert len(subjects) <= 1
            assert (verb.tense is None) == (verb.number is None)
            assert all(verb.number in (None, subject.number) for subject in subjects)


# What English words alone tell: the role of a pronoun, its number and gender; the tense of a verb.
PRONOUNS = {
    "i": ({"subject"}, "singular", None),
    "me": ({"accusative", "dative", "oblique"}, "singular", None),
    "he": ({"subject"}, "singular", "masculine"),
    "him": ({"accusative", "dative", "oblique"}, "singular", "masculine"),
    "she": ({"subject"}, "singular", "feminine"),
    "her": ({"accusative", "dative", "oblique"}, "singular", "feminine"),
    "we": ({"subject"}, "plural", None),
    "us": ({"accusative", "dative", "oblique"}, "plural", None),
    "they": ({"subject"}, "plural", None),
    "them": ({"accusative", "dative", "oblique"}, "plural", None),
}
TENSES = {
    "will": "future",
    "was": "past",
    "were": "past",
    "did": "past",
    "had": "pluperfect",
}


@pytest.mark.parametrize("split", SPLITS)
def test_labels_are_what_english_pronouns_and_auxiliaries_tell(whole: demo.CorpusSplits, split: LabelledSplit) -> None:
    seen = 0
    for (english, _), constituents in zip(getattr(whole, split), demo.labels(split), strict=True):
        words = [word.strip(",.?!").lower() for word in english.split()]
        for part in constituents:
            text = [words[position] for position in part.english]
            if part.role == "verb" and len(text) > 1 and text[0] in TENSES and text[1:2] != ["to"]:
                assert part.tense == TENSES[text[0]], (english, text)
                seen += 1
            elif text and text[0] in PRONOUNS:
                roles, number, gender = PRONOUNS[text[0]]
                assert part.role in roles
                assert (part.number, part.gender) == (number, gender)
                seen += 1
    assert seen > 100


def test_the_verb_s_words_may_stand_apart(whole: demo.CorpusSplits) -> None:
    apart = 0
    for (_, german), constituents in zip(whole.test, demo.labels("test"), strict=True):
        words = re.sub(r"[,.?!]", "", german).split()
        for part in constituents:
            if part.role == "verb" and words[part.german[0]] in {"hat", "haben", "habe"} and len(part.german) == 2:
                assert re.search(r"(t|en)$", words[part.german[1]]), german  # the participle
                apart += part.german[1] - part.german[0] > 1
    assert apart > 10


def test_labels_exist_for_the_tests_alone() -> None:
    with pytest.raises(DataError, match="no labels for 'train', only for test, test_combinations, test_long"):
        demo.labels("train")  # type: ignore[arg-type]
