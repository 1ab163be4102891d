"""Sentences of validation text that are in the training text too."""

from pathlib import Path

from tests.data.test_preparation import Watcher, build, config

from transduce.data.sentence_hashes import sentence_hashes
from transduce.data.token_store import TokenStore
from transduce.evaluation.overlap import trained_on
from transduce.files import write_manifest


def test_the_leak_check_folds_case_spaces_and_punctuation(tmp_path: Path) -> None:
    lines = [f"Sentence number {n}.\tSatz Nummer {n}.\n" for n in range(40)]
    (tmp_path / "train.tsv").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("sentence  NUMBER 3 !\tx\nAnother one.\ty\n", encoding="utf-8")
    watcher = Watcher()
    given = config(tmp_path / "train.tsv", valid=[str(tmp_path / "valid.tsv")], held_out_test=0)
    prepared = build(given, tmp_path / "data", watcher)
    assert prepared.report.splits["valid"].seen_in_training == 1
    assert any("1 of 2 valid sources are in the training text too" in warning for warning in watcher.warnings)
    known = prepared.training_hashes(given)
    assert trained_on(["sentence number 7", "Sentence number 7.", "Sentence number 70."], known) == [True, True, False]


def test_a_model_keeps_no_hashes_of_synthetic_sources(tmp_path: Path) -> None:
    for name, text in {
        "real": "One.\tEins.\nTwo.\tZwei.\n",
        "made": "Three.\tDrei.\n",
        "other": "Four.\tVier.\n",
    }.items():
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    corpora = [{"files": str(tmp_path / "made.tsv"), "synthetic": True}, {"files": str(tmp_path / "other.tsv")}]
    given = config(tmp_path / "real.tsv", corpora=corpora, held_out_valid=0, held_out_test=0)
    known = build(given, tmp_path / "data").training_hashes(given)
    assert trained_on(["One.", "Two.", "Three.", "Four."], known) == [True, True, False, True]


def test_no_held_out_source_differs_from_a_training_source_by_case_or_punctuation_alone(tmp_path: Path) -> None:
    lines = [f"Sentence {n}{end}\tSatz {n} {end}{n}\n" for n in range(60) for end in (".", "!", " ?")]
    (tmp_path / "train.tsv").write_text("".join(lines), encoding="utf-8")
    given = config(tmp_path / "train.tsv", held_out_valid=60, held_out_test=0)
    prepared = build(given, tmp_path / "data")
    assert prepared.valid is not None
    assert prepared.report.splits["valid"].seen_in_training == 0


def test_a_store_of_an_earlier_version_has_no_folded_hashes(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("One.\tEins.\nTwo.\tZwei.\n", encoding="utf-8")
    build(config(tmp_path / "train.tsv", held_out_valid=0), tmp_path / "data")
    (tmp_path / "data" / "train" / "source.folded_hashes").unlink()
    write_manifest(tmp_path / "data" / "train")
    store = TokenStore.open(tmp_path / "data" / "train")
    assert store.known_hashes().tolist() == sorted(sentence_hashes(["One.", "Two."]).tolist())
