"""Test sets are read whole, in any form that training reads, and lists of unequal length are refused."""

import gzip
from pathlib import Path

import pytest

from transduce.errors import DataError
from transduce.evaluation.record import hash_of_lines
from transduce.evaluation.reference_set import read_hypotheses, read_reference_set

SOURCES, TARGETS, OTHERS = ["A dog.", "", "It rains."], ["Ein Hund.", "", "Es regnet."], ["Hund.", "-", "Regen."]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def test_aligned_files_and_one_file_of_pairs_are_the_same_test_set(tmp_path: Path) -> None:
    aligned = f"{write(tmp_path / 'test.en', SOURCES)},{write(tmp_path / 'test.de', TARGETS)}"
    with gzip.open(tmp_path / "test.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True))
    first, second = read_reference_set(aligned), read_reference_set(str(tmp_path / "test.tsv.gz"))
    assert first.sources == second.sources == SOURCES, "an empty line stays: nothing is cleaned out of a test set"
    assert first.references == second.references == [TARGETS]
    assert first.hashes() == second.hashes()
    assert first.hashes() == {"sources": hash_of_lines(SOURCES), "reference 1": hash_of_lines(TARGETS)}


def test_further_references_are_added(tmp_path: Path) -> None:
    aligned = f"{write(tmp_path / 'test.en', SOURCES)},{write(tmp_path / 'test.de', TARGETS)}"
    found = read_reference_set(aligned, more_references=[write(tmp_path / "other.de", OTHERS)])
    assert found.references == [TARGETS, OTHERS]
    assert set(found.hashes()) == {"sources", "reference 1", "reference 2"}


def test_files_that_do_not_fit_are_named_with_their_counts(tmp_path: Path) -> None:
    aligned = f"{write(tmp_path / 'test.en', SOURCES)},{write(tmp_path / 'test.de', TARGETS)}"
    short = write(tmp_path / "short.de", ["one"])
    with pytest.raises(DataError, match=r"test\.de has 3, .*short\.de has 1"):
        read_reference_set(aligned, more_references=[short])
    with pytest.raises(DataError, match=r"short\.de has 1, .*test\.de has 3"):
        read_hypotheses(short, read_reference_set(aligned))
    with pytest.raises(DataError, match=r"missing\.txt does not exist"):
        read_hypotheses(tmp_path / "missing.txt", read_reference_set(aligned))
