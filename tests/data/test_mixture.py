"""What an epoch over several corpora holds."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.data.test_preparation import Watcher, build, originals, texts

from transduce.data.batching import BatchPlan
from transduce.data.config import DataConfig
from transduce.data.mixture import Mixture
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.training.batches import TrainingBatches
from transduce.training.config import TrainingConfig

TAG = ">>de<<"


def corpus(path: Path, word: str, pairs: int) -> str:
    path.write_text("".join(f"{word} {n}\t{word.upper()} {n}\n" for n in range(pairs)), encoding="utf-8")
    return str(path)


def mixed(folder: Path, **settings: object) -> DataConfig:
    """Return 50 pairs of new text and 200 of old, the latter with these settings."""
    new, old = corpus(folder / "new.tsv", "new", 50), corpus(folder / "old.tsv", "old", 200)
    return DataConfig.model_validate(
        {"train": [new], "corpora": [{"files": old, **settings}], "held_out_valid": 4, "held_out_test": 0}
    )


@given(st.integers(1, 40), st.floats(0.05, 3.0), st.integers(0, 2**31), st.integers(1, 6))
def test_after_any_number_of_epochs_the_pairs_of_a_corpus_were_seen_equally_often(
    size: int, weight: float, seed: int, epochs: int
) -> None:
    count = max(1, round(weight * size))
    mixture = Mixture(sizes=(7, size), counts=(7, count), seed=seed)
    held = [mixture.epoch(epoch) for epoch in range(epochs)]
    assert all(len(epoch) == 7 + count for epoch in held)
    seen = np.bincount(np.concatenate(held), minlength=7 + size)
    assert (seen[:7] == epochs).all()
    assert seen[7:].max() - seen[7:].min() <= 1


def test_an_epoch_depends_on_seed_and_number_alone() -> None:
    first, again, other = (Mixture(sizes=(3, 500), counts=(3, 50), seed=seed) for seed in (1, 1, 2))
    again.epoch(0)
    assert np.array_equal(first.epoch(9), again.epoch(9))
    assert set(first.epoch(9).tolist()) != set(first.epoch(8).tolist())
    assert set(first.epoch(9).tolist()) != set(other.epoch(9).tolist())


@pytest.mark.parametrize(("weight", "of_old"), [("equal", 46), (0.25, 50), (2, 400)])
def test_a_weight_says_how_often_a_pair_occurs(tmp_path: Path, weight: float | str, of_old: int) -> None:
    config = mixed(tmp_path, weight=weight)
    store = build(config, tmp_path / "data").train
    mixture = Mixture.of(config, store, seed=1)
    assert mixture is not None
    counts = Counter(store.text(int(n))[0].split()[0] for n in mixture.epoch(0))
    assert counts == {"new": 46, "old": of_old}


def test_ranks_share_the_pairs_of_a_mixture(tmp_path: Path) -> None:
    config = mixed(tmp_path, weight=0.1)
    store = build(config, tmp_path / "data").train
    mixture = Mixture.of(config, store, seed=1)
    batches = TrainingBatches(store, TrainingConfig(batch_tokens=64), mixture=mixture)
    assert mixture is not None
    for epoch in range(3):
        shares = [
            batch.sentences
            for step in batches.steps(epoch)
            for rank in range(3)
            for batch in batches.deal(step, epoch=epoch, rank=rank, ranks=3)
        ]
        assert sorted(np.concatenate(shares)) == sorted(mixture.epoch(epoch))


def test_the_memory_probe_sees_the_longest_pair_of_any_epoch(tmp_path: Path) -> None:
    config = mixed(tmp_path, weight=0.01)
    long = tmp_path / "old.tsv"
    long.write_text(long.read_text() + "old " * 80 + "\tOLD\n", encoding="utf-8")
    store = build(config, tmp_path / "data").train
    batches = TrainingBatches(store, TrainingConfig(batch_tokens=64), mixture=Mixture.of(config, store, seed=1))
    assert batches.largest(epoch=0, ranks=1).source_BS.size(1) == store.source_lengths.max()


def test_pairs_are_held_out_of_the_new_text_unless_the_old_text_holds_them_too(tmp_path: Path) -> None:
    config = mixed(tmp_path)
    (tmp_path / "old.tsv").write_text("".join(f"new {n}\told {n}\n" for n in range(40)), encoding="utf-8")
    held = originals(build(config, tmp_path / "data").valid)
    assert len(held) == 4
    assert {int(source.split()[1]) for source, _ in held} <= set(range(40, 50))


def test_without_other_text_pairs_are_held_out_of_all_corpora(tmp_path: Path) -> None:
    one, two = corpus(tmp_path / "one.tsv", "one", 60), corpus(tmp_path / "two.tsv", "two", 60)
    corpora = [{"files": one, "tag": TAG}, {"files": two, "tag": ">>fr<<"}]
    config = DataConfig.model_validate({"corpora": corpora, "held_out_valid": 30})
    held = originals(build(config, tmp_path / "data").valid)
    assert {source.split()[0] for source, _ in held} == {TAG, ">>fr<<"}  # a translation needs the tag too


def test_a_tag_is_one_piece_before_every_source_of_its_corpus(tmp_path: Path) -> None:
    watcher = Watcher()
    prepared = build(mixed(tmp_path, tag=TAG), tmp_path / "data", watcher)
    assert {source.startswith(f"{TAG} old") for source, _ in texts(prepared.train) if "old" in source} == {True}
    assert not any(TAG in source for source, _ in texts(prepared.train) if "new" in source)
    tokenizer = prepared.tokenizers.source
    assert isinstance(tokenizer, BpeTokenizer)
    ids = tokenizer.encode(f"{TAG} old 1")
    assert [tokenizer.piece(token) for token in ids][:2] == ["▁", TAG]
    assert tokenizer.decode(ids) == f"{TAG} old 1"
    assert tokenizer.sample(f"{TAG} old 1", dropout=0.0, key=(1, 2, 3)) == ids
    assert TAG in map(tokenizer.piece, tokenizer.sample(f"{TAG} old 1", dropout=1.0, key=(1, 2, 3)))
    assert BpeTokenizer.from_bytes(tokenizer.to_bytes()).encode(f"{TAG} old 1") == ids
    assert not watcher.warnings


def test_a_vocabulary_without_the_tag_spells_it_and_says_so(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.model"
    tokenizer.write_bytes(BpeTokenizer.learn(["new old NEW OLD 0 1 2 3"], vocabulary_size=300).to_bytes())
    watcher = Watcher()
    config = mixed(tmp_path, tag=TAG).model_copy(update={"tokenizer": tokenizer})
    prepared = build(config, tmp_path / "data", watcher)
    assert any(f"The vocabulary has no piece {TAG}" in warning for warning in watcher.warnings)
    old = next(n for n in range(len(prepared.train)) if "old" in prepared.train.text(n)[0])
    assert prepared.tokenizers.source.decode(prepared.train.source(old).tolist()).startswith(f"{TAG} old")


@pytest.mark.parametrize(
    ("corpora", "fault"),
    [
        ([{"files": "a.tsv", "tag": "<b>"}], "'<b>' is no tag"),
        ([{"files": "a.tsv", "tag": ">>two words<<"}], "is no tag"),
        ([{"files": []}], "at least 1"),
        ([{"files": "a.tsv", "weight": 0}], "greater than 0"),
        ([{"files": "a.tsv", "weight": "equal"}], r"as many pairs as data\.train has"),
    ],
)
def test_corpora_that_mean_nothing_are_refused(corpora: object, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        DataConfig.model_validate({"corpora": corpora})


def test_without_corpora_the_plan_of_an_epoch_is_what_it_was(tmp_path: Path) -> None:
    config = DataConfig(train=(corpus(tmp_path / "new.tsv", "new", 50),))
    store = build(config, tmp_path / "data").train
    assert Mixture.of(config, store, seed=1) is None
    plan = BatchPlan(store.source_lengths, store.target_lengths, tokens_per_step=64, seed=1)
    whole = plan.epoch(2, np.arange(len(store)))
    assert [step.tolist() for step in plan.epoch(2)] == [step.tolist() for step in whole]
