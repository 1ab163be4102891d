"""The splits keep their promises: nothing shared, nothing reserved in training, the long ones longer."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from transduce import demo
from transduce.demo.combinations import reserved
from transduce.demo.corpus import LONGEST, _take, home
from transduce.demo.lexicon import Verb, lexicon

PAIRS = 1500
HELD_OUT = 30


@pytest.fixture(scope="module")
def corpus() -> demo.Corpus:
    return demo.corpus(pairs=PAIRS, held_out=HELD_OUT)


def test_every_split_has_the_size_asked_for(corpus: demo.Corpus) -> None:
    assert len(corpus.train) == PAIRS
    assert [len(split) for split in corpus[1:]] == [HELD_OUT] * 4


def test_no_sentence_is_in_two_splits_nor_twice_in_one(corpus: demo.Corpus) -> None:
    for side in (0, 1):
        sentences = [pair[side] for split in corpus for pair in split]
        assert len(sentences) == len(set(sentences))


def test_a_sentence_is_held_out_whatever_the_seed(corpus: demo.Corpus) -> None:
    held_out = {pair for split in (corpus.valid, corpus.test) for pair in split}
    for seed in (2, 3):
        assert held_out.isdisjoint(demo.corpus(pairs=PAIRS, seed=seed, held_out=0).train)
    assert {home(target) for _, target in corpus.train} == {"train"}


def test_english_determines_german(corpus: demo.Corpus) -> None:
    translations = dict(corpus.train)
    for seed in (2, 3):
        for source, target in demo.corpus(pairs=PAIRS, seed=seed, held_out=0).train:
            assert translations.setdefault(source, target) == target


def test_long_sentences_are_longer_than_any_in_training(corpus: demo.Corpus) -> None:
    for side in (0, 1):
        longest = max(len(pair[side].split()) for pair in corpus.train)
        assert longest <= LONGEST
        assert min(len(pair[side].split()) for pair in corpus.test_long) > longest


def test_reserved_adjectives_and_nouns_never_meet_in_training(corpus: demo.Corpus) -> None:
    words = lexicon()
    forbidden = set()
    for first, second in reserved():
        if first in words.adjectives and second in words.nouns:
            adjective, noun = words.adjectives[first], words.nouns[second]
            same_surface = [a.key for a in words.adjectives.values() if a.english == adjective.english]
            senses = [n.key for n in words.nouns.values() if n.english == noun.english and not n.key.endswith(".f")]
            if len(same_surface) == len(senses) == 1:
                forbidden |= {f"{adjective.english} {noun.english}", f"{adjective.english} {noun.english_plural}"}
    assert len(forbidden) > 100
    for source, _ in corpus.train:
        tokens = source.rstrip(".?!").replace(",", "").replace("'s", "").split()
        assert forbidden.isdisjoint(" ".join(pair) for pair in itertools.pairwise(tokens))


@pytest.mark.slow
def test_words_of_new_combinations_are_known_from_training(corpus: demo.Corpus) -> None:
    train = demo.corpus(pairs=40_000, held_out=0).train
    known, asked = (
        {word for source, _ in pairs for word in re.findall(r"[\w'-]+", source)}
        for pairs in (train, corpus.test_combinations)
    )
    assert asked <= known


@pytest.mark.slow
def test_every_word_of_the_lexicon_is_used() -> None:
    words = lexicon()
    text = " ".join(source for source, _ in demo.corpus(pairs=40_000, held_out=0).train).lower()
    nouns = {noun.english.lower() for noun in words.nouns.values()}
    assert {noun for noun in nouns if f" {noun}" not in text} == set()
    assert {a.english for a in words.adjectives.values() if f" {a.english} " not in text} == set()
    verbs = {verb.key for verb in words.verbs.values() if not _occurs(verb, text)}
    assert verbs == set()


def _occurs(verb: Verb, text: str) -> bool:
    return any(f" {form}" in text for form in verb.english[:5])


def test_a_seed_repeats_and_another_differs() -> None:
    first, again, other = (demo.corpus(pairs=100, seed=seed, held_out=5) for seed in (7, 7, 8))
    assert first == again
    assert first.train != other.train


def test_the_order_of_sets_has_no_say() -> None:
    code = "from transduce import demo; print(hash('a'), ascii(demo.corpus(pairs=300, held_out=9)), sep='|')"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split("|")
        for seed in ("1", "2")
    ]
    assert runs[0][0] != runs[1][0]
    assert runs[0][1] == runs[1][1]


def test_asking_for_more_appends() -> None:
    few, many = (demo.corpus(pairs=pairs, held_out=held_out) for pairs, held_out in ((50, 3), (200, 7)))
    for shorter, longer in zip(few, many, strict=True):
        assert longer[: len(shorter)] == shorter


def test_nothing_asked_for_is_nothing() -> None:
    assert demo.corpus(pairs=0, held_out=0) == demo.Corpus([], [], [], [], [])


def test_files_hold_the_corpus(tmp_path: Path) -> None:
    demo.write_corpus(tmp_path / "new" / "folder", pairs=40, held_out=4)
    corpus = demo.corpus(pairs=40, held_out=4)
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "test.tsv",
        "test_combinations.tsv",
        "test_long.tsv",
        "train.tsv",
        "valid.tsv",
    ]
    for split, pairs in corpus._asdict().items():
        content = (tmp_path / "new" / "folder" / f"{split}.tsv").read_bytes().decode("utf-8")
        assert content.endswith("\n")
        assert "\r" not in content
        assert [tuple(line.split("\t")) for line in content.split("\n")[:-1]] == pairs


def test_neither_side_is_taken_twice() -> None:
    stream = iter([("a", "A"), ("a", "B"), ("b", "A"), ("c", "C"), ("a", "A"), ("d", "D")])
    assert _take(stream, 3) == [("a", "A"), ("c", "C"), ("d", "D")]
