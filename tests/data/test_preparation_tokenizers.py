"""Preparation with tokenizers of every kind: characters, one for each side, sources without an end token."""

from pathlib import Path
from typing import Any

import pytest

from transduce.data.config import DataConfig
from transduce.data.preparation import Prepared, prepare
from transduce.data.reuse import settings_of
from transduce.errors import ConfigError
from transduce.progress import Silent
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.character_tokenizer import CharacterTokenizer
from transduce.text.tokenizer import Tokenizer

END = 3


def build(folder: Path, *train: Path, source_size: int | None = None, **settings: object) -> Prepared:
    config = DataConfig.model_validate({"train": list(map(str, train)), "held_out_valid": 9, **settings})
    return prepare(config, folder, vocabulary_size=400, source_vocabulary_size=source_size, progress=Silent())


def sides(prepared: Prepared) -> tuple[list[str], list[str]]:
    texts = [prepared.train.text(number) for number in range(len(prepared.train))]
    return [source for source, _ in texts], [target for _, target in texts]


def write(path: Path, tokenizer: Tokenizer) -> Path:
    path.write_bytes(tokenizer.to_bytes())
    return path


def test_characters_are_learned_from_both_sides_of_the_training_text(corpus: Path, tmp_path: Path) -> None:
    prepared = build(tmp_path / "p", corpus, pieces="characters")
    sources, targets = sides(prepared)
    expected = CharacterTokenizer.learn([*sources, *targets], vocabulary_size=400)
    assert prepared.tokenizers.target.fingerprint == prepared.tokenizers.source.fingerprint == expected.fingerprint
    assert prepared.train.source(0).tolist() == [*expected.encode(sources[0]), END]


@pytest.mark.parametrize(("pieces", "learner"), [("bpe", BpeTokenizer), ("characters", CharacterTokenizer)])
def test_separate_vocabularies_are_learned_from_one_side_each(
    corpus: Path, tmp_path: Path, pieces: str, learner: type[BpeTokenizer | CharacterTokenizer]
) -> None:
    prepared = build(tmp_path / "p", corpus, pieces=pieces, vocabularies="separate", source_size=310)
    sources, targets = sides(prepared)
    source, target = learner.learn(sources, vocabulary_size=310), learner.learn(targets, vocabulary_size=400)
    assert prepared.tokenizers.source.fingerprint == source.fingerprint
    assert prepared.tokenizers.target.fingerprint == target.fingerprint
    assert prepared.train.source(0).tolist() == [*source.encode(sources[0]), END]
    assert prepared.train.target(0).tolist() == [*target.encode(targets[0]), END]
    sizes = prepared.train.source_vocabulary_size, prepared.train.vocabulary_size
    assert sizes == (source.vocabulary_size, target.vocabulary_size)
    back = prepared.reversed()
    assert back.train.source(0).tolist() == prepared.train.target(0).tolist()
    assert back.tokenizers.source is prepared.tokenizers.target
    assert (back.train.vocabulary_size, back.report.vocabulary_size) == (sizes[0], sizes[0])
    assert back.report.source_vocabulary_size == sizes[1]

    again = build(tmp_path / "p", corpus, pieces=pieces, vocabularies="separate", source_size=310)
    assert again.tokenizers.fingerprint == prepared.tokenizers.fingerprint
    corpus.unlink()  # nothing is learned again, so nothing needs the text
    build(tmp_path / "p", corpus, pieces=pieces, vocabularies="separate", source_size=310)


def test_sources_without_an_end_token(corpus: Path, tmp_path: Path) -> None:
    prepared = build(tmp_path / "p", corpus, source_end=False)
    sources, targets = sides(prepared)
    tokenizer = prepared.tokenizers.target
    assert prepared.train.source(0).tolist() == tokenizer.encode(sources[0])
    assert prepared.train.target(0).tolist() == [*tokenizer.encode(targets[0]), END]
    usual = build(tmp_path / "p", corpus)
    assert usual.train.source(0).tolist() == [*tokenizer.encode(sources[0]), END], "other settings prepare again"


def test_two_tokenizers_that_are_given(corpus: Path, tmp_path: Path) -> None:
    learned = [BpeTokenizer.learn(["the dog and the cat", "Hund und Katze"] * 5, vocabulary_size=n) for n in (300, 310)]
    source, target = (write(tmp_path / f"{n}.model", own) for n, own in enumerate(learned))
    given: dict[str, Any] = {"tokenizer": target, "source_tokenizer": source}
    prepared = build(tmp_path / "p", corpus, vocabularies="separate", **given)
    assert [own.vocabulary_size for own in (prepared.tokenizers.source, prepared.tokenizers.target)] == [300, 310]
    with pytest.raises(ConfigError, match="do not give the same pieces the same ids"):
        build(tmp_path / "q", corpus, **given)
    one_vocabulary = build(tmp_path / "r", corpus, tokenizer=target, source_tokenizer=target)
    assert one_vocabulary.tokenizers.source_vocabulary_size is None
    for only in given:
        with pytest.raises(ValueError, match="Give both tokenizer and source_tokenizer, or neither"):
            build(tmp_path / "s", corpus, vocabularies="separate", **{only: given[only]})
    with pytest.raises(ConfigError, match=r"data\.source_tokenizer = .*nowhere: there is no such file"):
        build(tmp_path / "t", corpus, tokenizer=target, source_tokenizer=tmp_path / "nowhere")


def test_a_given_tokenizer_must_be_of_the_kind_that_is_asked_for(corpus: Path, tmp_path: Path) -> None:
    characters = write(tmp_path / "c.model", CharacterTokenizer(["a", "b"]))
    assert build(tmp_path / "p", corpus, pieces="characters", tokenizer=characters).train.vocabulary_size == 279
    with pytest.raises(ConfigError, match=r"of the kind 'characters'.*Set data\.pieces = .characters"):
        build(tmp_path / "q", corpus, tokenizer=characters)


def test_what_earlier_versions_prepared_is_known_again() -> None:
    """Their records have neither the keys of [data] that were added nor those of a source vocabulary."""
    found = settings_of(DataConfig(train=("a.tsv",)), vocabulary_size=400)
    assert found.keys() == {"format", "data", "vocabulary_size", "tokenizer_sha256"}
    assert not {"pieces", "vocabularies", "source_tokenizer", "source_end"} & found["data"].keys()
    other = settings_of(DataConfig(train=("a.tsv",), pieces="characters"), vocabulary_size=400)
    assert other["data"] == {**found["data"], "pieces": "characters"}
