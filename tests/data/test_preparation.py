import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from transduce.data.config import DataConfig
from transduce.data.preparation import Prepared, prepare
from transduce.data.sentence_hashes import are_known, hashes_after_folding
from transduce.data.token_store import TokenStore
from transduce.errors import ConfigError, DataError, RunError
from transduce.files import locked
from transduce.progress import Silent, SilentStage, Stage
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.bpe_tokenizer import BpeTokenizer

EOS, SIZE = OWN_SPECIAL_TOKENS.end, 400


class Watcher(Silent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []

    @contextmanager
    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        self.stages.append(name)
        yield SilentStage()

    def note(self, message: str) -> None:
        self.notes.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def config(*train: Path | str, **settings: object) -> DataConfig:
    return DataConfig.model_validate({"train": [str(name) for name in train], **settings})


def build(config: DataConfig, folder: Path, watcher: Watcher | None = None) -> Prepared:
    return prepare(config, folder, vocabulary_size=SIZE, progress=watcher or Silent())


def originals(store: TokenStore | None) -> list[tuple[str, str]]:
    return [] if store is None else [store.original(n) for n in range(len(store))]


def texts(store: TokenStore) -> list[tuple[str, str]]:
    return [store.text(n) for n in range(len(store))]


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def test_every_pair_ends_up_in_exactly_one_split(
    corpus: Path, sentences: list[tuple[str, str]], tmp_path: Path
) -> None:
    prepared = build(config(corpus, held_out_valid=9, held_out_test=5), tmp_path / "p")
    parts = texts(prepared.train), originals(prepared.valid), originals(prepared.test)
    assert tuple(map(len, parts)) == (66, 9, 5)
    assert sorted(pair for part in parts for pair in part) == sorted(sentences)
    assert parts[0] == [pair for pair in sentences if pair in parts[0]], "the order of the file is kept"


def test_ids_are_those_of_the_tokenizer_with_an_end_mark(corpus: Path, tmp_path: Path) -> None:
    prepared = build(config(corpus), tmp_path / "p")
    assert prepared.tokenizers.target.vocabulary_size == prepared.train.vocabulary_size <= SIZE
    for number, (source, target) in enumerate(texts(prepared.train)):
        assert prepared.train.source(number).tolist() == [*prepared.tokenizers.target.encode(source), EOS]
        assert prepared.train.target(number).tolist() == [*prepared.tokenizers.target.encode(target), EOS]
        assert prepared.tokenizers.target.decode(prepared.train.target(number).tolist()) == target


def test_placeholders_are_out_of_the_text_and_whole_in_the_originals(tmp_path: Path) -> None:
    rows = [f"open file {n} %s now\töffne Datei {n} %s jetzt\n" for n in range(30)]
    (tmp_path / "x.tsv").write_text("".join(rows), encoding="utf-8")
    prepared = build(config(tmp_path / "x.tsv", held_out_valid=5), tmp_path / "p")
    assert not any("%s" in side for pair in texts(prepared.train) for side in pair)
    assert all("%s" in side for pair in originals(prepared.valid) for side in pair)


def test_a_file_with_another_count_of_pairs_than_expected_is_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"{corpus.name} holds 80 pairs, but data.expected_pairs says 81"):
        build(config(corpus, expected_pairs={corpus.name: 81}), tmp_path / "p")
    build(config(corpus, expected_pairs={corpus.name: 80, "another.tsv": 5}), tmp_path / "p")
    again = Watcher()
    build(config(corpus), tmp_path / "p", again)
    assert not again.stages, "what is expected does not change what is prepared"


def test_the_vocabulary_is_learned_from_the_training_text_alone(
    corpus: Path, sentences: list[tuple[str, str]], tmp_path: Path
) -> None:
    prepared = build(config(corpus, held_out_valid=20), tmp_path / "p")
    lines = [side for pair in texts(prepared.train) for side in pair]
    assert prepared.tokenizers.target.to_bytes() == BpeTokenizer.learn(lines, vocabulary_size=SIZE).to_bytes()


def test_files_given_for_validation_and_test_are_used_whole(corpus: Path, tmp_path: Path) -> None:
    long = "word " * 300
    (tmp_path / "v.tsv").write_text(f"v one\tv eins\n\tleer\n{long}\tlang\nv two\tv zwei\n", encoding="utf-8")
    (tmp_path / "t.tsv").write_text(f"t one\tt eins\n\tleer\n{long}\tlang\na\x92\tb\n", encoding="utf-8")
    watcher = Watcher()
    prepared = build(
        config(corpus, valid=[str(tmp_path / "v.tsv")], test=[str(tmp_path / "t.tsv")]), tmp_path / "p", watcher
    )
    assert originals(prepared.valid) == [("v one", "v eins"), ("v two", "v zwei")]
    assert [target for _, target in originals(prepared.test)] == ["t eins", "leer", "lang", "b"]
    assert prepared.report.splits["valid"].dropped == {"empty": 1, "too long": 1}
    assert prepared.report.splits["test"].beyond_maximum == 1
    assert any("1 of 4 test pairs are longer than data.max_length" in warning for warning in watcher.warnings)
    assert len(prepared.train) == 80


def test_several_files_and_forms_make_one_split(tmp_path: Path, sentences: list[tuple[str, str]]) -> None:
    (tmp_path / "a.en").write_text("".join(f"{s}\n" for s, _ in sentences[:30]), encoding="utf-8")
    (tmp_path / "a.de").write_text("".join(f"{t}\n" for _, t in sentences[:30]), encoding="utf-8")
    rows = [f"{s};{t}\n" for s, t in sentences[30:]] + [f"{'long ' * 300};lang\n"]
    (tmp_path / "b.csv").write_text("".join(rows), encoding="utf-16")
    prepared = build(
        config(f"{tmp_path / 'a.en'},{tmp_path / 'a.de'}", tmp_path / "b.csv", held_out_valid=0), tmp_path / "p"
    )
    assert texts(prepared.train) == sentences
    assert [corpus.pairs for corpus in prepared.report.corpora["train"]] == [30, 51]
    assert (prepared.valid, prepared.test) == (None, None)
    assert f"{tmp_path / 'b.csv'}:51\ttoo long" in (tmp_path / "p" / "dropped.tsv").read_text(encoding="utf-8")


def test_what_is_dropped_is_counted_by_rule_and_listed(corpus: Path, tmp_path: Path) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write("\tnothing\nsame\tsame\nbad\x80\tschlecht\nthe dog\tder Hund\nthe dog\tder Hund\n")
        file.write(f"{'very ' * 300}\tlang\na\t{'lang ' * 40}\n")
    rules = {"drop_duplicates": True, "drop_copies": True, "drop_length_ratio": True}
    prepared = build(config(corpus, **rules), tmp_path / "p")
    assert {reason: count for split, reason, count in prepared.report.dropped_rows() if split == "train"} == {
        "empty": 1,
        "source equal to target": 1,
        "control characters": 1,
        "duplicate": 1,
        "too long": 1,
        "length ratio": 1,
    }
    listed = [line.split("\t") for line in (tmp_path / "p" / "dropped.tsv").read_text(encoding="utf-8").splitlines()]
    where = {row[2]: row[1] for row in listed[1:]}
    assert where["empty"] == f"{corpus}:81"
    assert where["duplicate"] == f"{corpus}:85"
    assert where["too long"] == f"{corpus}:86"


def test_switched_off_rules_drop_nothing(corpus: Path, tmp_path: Path) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write(f"\tnothing\nbad\x80\tschlecht\n{'very ' * 300}\tlang\n")
    off = {"drop_empty": False, "drop_control_characters": False, "drop_too_long": False, "held_out_valid": 0}
    prepared = build(config(corpus, **off), tmp_path / "p")
    assert len(prepared.train) == 83
    assert prepared.report.splits["train"].beyond_maximum == 1
    assert prepared.train.source(80).tolist() == [EOS]


def test_the_report_counts_lengths_files_and_padding(corpus: Path, tmp_path: Path) -> None:
    prepared = build(config(corpus, source_language="en", target_language="de"), tmp_path / "p")
    train = prepared.report.splits["train"]
    assert (train.pairs, train.source.total) == (len(prepared.train), int(prepared.train.source_lengths.sum()))
    assert train.target.longest == int(prepared.train.target_lengths.max())
    (file,) = prepared.report.corpora["train"][0].files
    assert file.sha256 == hashlib.sha256(corpus.read_bytes()).hexdigest()
    assert set(prepared.report.padding) == {4096, 25_000}
    assert prepared.report.source_language == "en"


def test_test_sentences_seen_in_training_are_counted(
    corpus: Path, sentences: list[tuple[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "t.tsv").write_text(f" {sentences[3][0]} \tanders\nnever seen\tnie\n", encoding="utf-8")
    watcher = Watcher()
    given = config(corpus, test=[str(tmp_path / "t.tsv")], held_out_valid=0)
    prepared = build(given, tmp_path / "p", watcher)
    assert prepared.report.splits["test"].seen_in_training == 1
    assert watcher.warnings == ["1 of 2 test sources are in the training text too."]
    hashes = prepared.training_hashes(given)
    assert (np.diff(hashes.astype(np.float64)) > 0).all()
    assert are_known(hashes_after_folding([sentences[3][0], "never seen"]), hashes).tolist() == [True, False]


def test_a_tokenizer_can_be_brought_along(corpus: Path, tmp_path: Path) -> None:
    brought = BpeTokenizer.learn(["the dog and the cat", "Hund und Katze"] * 5, vocabulary_size=310)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer.model").write_bytes(brought.to_bytes())
    for path in (tmp_path / "model", tmp_path / "model" / "tokenizer.model"):
        prepared = build(config(corpus, tokenizer=path), tmp_path / "p")
        assert prepared.tokenizers.target.to_bytes() == brought.to_bytes()
        assert not prepared.report.tokenizer_was_learned
    with pytest.raises(ConfigError, match=r"data\.tokenizer = .*nowhere.*no such file"):
        build(config(corpus, tokenizer=tmp_path / "nowhere"), tmp_path / "p")


class TestReuse:
    def test_nothing_is_done_when_nothing_changed(self, corpus: Path, tmp_path: Path) -> None:
        first = build(config(corpus), tmp_path / "p")
        watcher = Watcher()
        second = build(config(corpus), tmp_path / "p", watcher)
        assert watcher.stages == watcher.notes == watcher.warnings == []
        assert second.report == first.report

    def test_a_new_time_alone_costs_one_look_at_the_content(self, corpus: Path, tmp_path: Path) -> None:
        build(config(corpus), tmp_path / "p")
        os.utime(corpus, ns=(5, 5))
        watcher = Watcher()
        build(config(corpus), tmp_path / "p", watcher)
        assert watcher.stages == []
        assert '"modified_ns": 5' in (tmp_path / "p" / "prepared.json").read_text(encoding="utf-8")

    def test_the_same_size_with_other_text_is_noticed(
        self, corpus: Path, sentences: list[tuple[str, str]], tmp_path: Path
    ) -> None:
        build(config(corpus), tmp_path / "p")
        corpus.write_bytes(corpus.read_bytes().replace(b"dog", b"hog"))
        prepared = build(config(corpus), tmp_path / "p")
        assert any("hog" in source for source, _ in texts(prepared.train))

    def test_other_settings_and_sizes_build_anew(self, corpus: Path, tmp_path: Path) -> None:
        build(config(corpus), tmp_path / "p")
        assert build(config(corpus, held_out_valid=3), tmp_path / "p").report.splits["valid"].pairs == 3
        smaller = prepare(config(corpus, held_out_valid=3), tmp_path / "p", vocabulary_size=300)
        assert smaller.tokenizers.target.vocabulary_size == 300

    def test_another_tokenizer_under_the_same_name_builds_anew(self, corpus: Path, tmp_path: Path) -> None:
        for size in (300, 310):
            tokenizer = BpeTokenizer.learn(["the dog and the cat", "Hund und Katze"] * 5, vocabulary_size=size)
            (tmp_path / "t.model").write_bytes(tokenizer.to_bytes())
            prepared = build(config(corpus, tokenizer=tmp_path / "t.model"), tmp_path / "p")
            assert prepared.tokenizers.target.to_bytes() == tokenizer.to_bytes()

    def test_a_corpus_that_is_gone_is_not_needed_any_more(self, corpus: Path, tmp_path: Path) -> None:
        build(config(corpus), tmp_path / "p")
        corpus.unlink()
        watcher = Watcher()
        build(config(corpus), tmp_path / "p", watcher)
        assert watcher.warnings == [f"{corpus} no longer exists; the run uses the corpus prepared from it."]

    def test_a_tokenizer_that_is_gone_is_not_needed_any_more(self, corpus: Path, tmp_path: Path) -> None:
        brought = BpeTokenizer.learn(["the dog and the cat", "Hund und Katze"] * 5, vocabulary_size=310)
        (tmp_path / "t.model").write_bytes(brought.to_bytes())
        with_it = config(corpus, tokenizer=tmp_path / "t.model")
        first = build(with_it, tmp_path / "p")
        (tmp_path / "t.model").unlink()
        watcher = Watcher()
        assert build(with_it, tmp_path / "p", watcher).report == first.report
        assert watcher.stages == []
        with pytest.raises(ConfigError, match="no such file"):
            build(config(corpus, tokenizer=tmp_path / "t.model", held_out_valid=3), tmp_path / "p")

    @pytest.mark.parametrize("gone", ["t.model", "corpus.tsv"])
    def test_nothing_is_taken_away_that_cannot_be_built_anew(self, corpus: Path, tmp_path: Path, gone: str) -> None:
        brought = BpeTokenizer.learn(["the dog and the cat", "Hund und Katze"] * 5, vocabulary_size=310)
        (tmp_path / "t.model").write_bytes(brought.to_bytes())
        text = corpus.rename(tmp_path / "corpus.tsv")
        with_it = config(text, tokenizer=tmp_path / "t.model")
        build(with_it, tmp_path / "p")
        (tmp_path / gone).rename(tmp_path / "kept")
        with (tmp_path / "p" / "train" / "source.values").open("r+b") as file:
            file.truncate(7)
        before = digests(tmp_path / "p")
        with pytest.raises((ConfigError, DataError), match=gone):
            build(with_it, tmp_path / "p")
        assert digests(tmp_path / "p") == before
        (tmp_path / "kept").rename(tmp_path / gone)
        assert build(with_it, tmp_path / "p").tokenizers.target.to_bytes() == brought.to_bytes()

    @pytest.mark.parametrize("damage", ["train/source.values", "tokenizer.model", "prepared.json", "valid/store.json"])
    def test_a_damaged_store_is_built_anew(self, corpus: Path, tmp_path: Path, damage: str) -> None:
        build(config(corpus), tmp_path / "p")
        whole = digests(tmp_path / "p")
        with (tmp_path / "p" / damage).open("r+b") as file:
            file.truncate(7)
        build(config(corpus), tmp_path / "p")
        assert digests(tmp_path / "p") == whole


def interrupt(config: DataConfig, folder: Path, *, stage: str) -> None:
    """Prepare as far as the middle of a stage."""

    class InterruptedStage(SilentStage):
        def advance(self, amount: int = 1) -> None:
            raise KeyboardInterrupt

    class Interrupted(Silent):
        @contextmanager
        def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
            yield InterruptedStage() if name == stage else SilentStage()
            if name == stage:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(config, folder, vocabulary_size=SIZE, progress=Interrupted())


class TestInterruption:
    @pytest.mark.parametrize("name", ["reading", "counting words", "encoding train", "encoding valid", "encoding test"])
    def test_interrupted_in_any_stage_it_goes_on_to_the_same_bytes(
        self, corpus: Path, tmp_path: Path, name: str
    ) -> None:
        build(config(corpus), tmp_path / "whole")
        interrupt(config(corpus), tmp_path / "p", stage=name)
        watcher = Watcher()
        build(config(corpus), tmp_path / "p", watcher)
        assert digests(tmp_path / "p") == digests(tmp_path / "whole")
        assert ("reading" in watcher.stages) == (name == "reading"), "a finished stage is not repeated"

    def test_other_settings_after_an_interruption_take_nothing_of_the_old(self, corpus: Path, tmp_path: Path) -> None:
        build(config(corpus, held_out_valid=3), tmp_path / "whole")
        interrupt(config(corpus), tmp_path / "p", stage="encoding valid")
        build(config(corpus, held_out_valid=3), tmp_path / "p")
        assert digests(tmp_path / "p") == digests(tmp_path / "whole")

    def test_what_a_kill_left_behind_is_cleared(self, corpus: Path, tmp_path: Path) -> None:
        build(config(corpus), tmp_path / "whole")
        interrupt(config(corpus), tmp_path / "p", stage="encoding valid")
        shutil.copytree(tmp_path / "p" / "text", tmp_path / "kept")
        build(config(corpus), tmp_path / "p")
        # As if killed after the record was written and before the text was removed; later a store was damaged too.
        (tmp_path / "kept").rename(tmp_path / "p" / "text")
        (tmp_path / "p" / "tokenizer.model.being-written-12-34").touch()
        (tmp_path / "p" / "train" / "store.json").write_text("{", encoding="utf-8")
        build(config(corpus), tmp_path / "p")
        assert digests(tmp_path / "p") == digests(tmp_path / "whole")

    def test_a_second_process_is_refused(self, corpus: Path, tmp_path: Path) -> None:
        with (
            locked(tmp_path / "p" / ".lock", purpose="preparing a corpus"),
            pytest.raises(RunError, match="in use by another process"),
        ):
            build(config(corpus), tmp_path / "p")


class TestFaults:
    def test_no_training_text(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"data\.train is empty"):
            build(DataConfig(), tmp_path / "p")

    @pytest.mark.parametrize("split", ["train", "valid"])
    def test_nothing_left_after_cleaning(self, corpus: Path, tmp_path: Path, split: str) -> None:
        (tmp_path / "x.tsv").write_text("\ta\n\t\n\n", encoding="utf-8")
        files = {"train": [str(corpus)]} | {split: [str(tmp_path / "x.tsv")]}
        with pytest.raises(DataError, match=rf"None of the 3 pairs of data\.{split} is left .*empty: 3"):
            build(DataConfig.model_validate(files), tmp_path / "p")

    def test_everything_too_long(self, corpus: Path, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"None of the \d+ pairs for train is left: too long: .*max_length = 2"):
            build(config(corpus, max_length=2), tmp_path / "p")

    def test_nothing_can_be_held_out(self, tmp_path: Path) -> None:
        (tmp_path / "x.tsv").write_text("one\teins\none\tein\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"No pair can be held out.*data\.held_out_valid = 0"):
            build(config(tmp_path / "x.tsv"), tmp_path / "p")
        assert len(build(config(tmp_path / "x.tsv", held_out_valid=0), tmp_path / "p").train) == 2

    def test_a_faulty_file_leaves_nothing_half_built(self, corpus: Path, tmp_path: Path) -> None:
        with corpus.open("ab") as file:
            file.write(b"no second column\n")
        with pytest.raises(DataError, match=r"corpus\.tsv:81: column 2 is missing"):
            build(config(corpus), tmp_path / "p")
        assert [path.name for path in (tmp_path / "p").iterdir()] == [".lock"]

    def test_a_full_disk_is_told_and_what_was_finished_is_kept(
        self, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class FullDisk(Watcher):
            @contextmanager
            def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
                if name == "encoding train":
                    patch.setattr(os, "fsync", full)
                yield SilentStage()

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with (
            monkeypatch.context() as patch,
            pytest.raises(RunError, match=r"No space left on device\. Free some space"),
        ):
            build(config(corpus), tmp_path / "p", FullDisk())
        watcher = Watcher()
        build(config(corpus), tmp_path / "p", watcher)
        assert watcher.stages == ["encoding train", "encoding valid", "encoding test"]
