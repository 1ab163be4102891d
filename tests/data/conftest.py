import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

SUBJECTS = [("the dog", "der Hund"), ("the cat", "die Katze"), ("the child", "das Kind"), ("my friend", "mein Freund")]
VERBS = [("sees", "sieht"), ("finds", "findet"), ("hears", "hört"), ("paints", "malt"), ("follows", "verfolgt")]
OBJECTS = [("a house", "ein Haus"), ("the tree", "den Baum"), ("a red boat", "ein rotes Boot"), ("music", "Musik")]


@pytest.fixture(scope="package", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Flushing to the disk matters when the power fails, which no test here simulates, and is most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def sentences() -> list[tuple[str, str]]:
    """Eighty different pairs in a fixed shuffled order, no source and no target twice."""
    pairs = [
        (f"{subject[0]} {verb[0]} {thing[0]}", f"{subject[1]} {verb[1]} {thing[1]}")
        for subject in SUBJECTS
        for verb in VERBS
        for thing in OBJECTS
    ]
    random.Random(7).shuffle(pairs)
    return pairs


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[tuple[str, str]]) -> Path:
    """The pairs as a TSV file."""
    path = tmp_path / "corpus.tsv"
    path.write_bytes("".join(f"{source}\t{target}\n" for source, target in sentences).encode())
    return path
