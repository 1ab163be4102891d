"""The grammar writes the corpus file that the package ships."""

import bz2
import itertools
from importlib import resources

import pytest

from demo_grammar.corpus_file import SPLITS, content
from transduce.demo.corpus import FILE


@pytest.fixture(scope="module")
def shipped() -> str:
    return bz2.decompress(resources.files("transduce.demo").joinpath(FILE).read_bytes()).decode()


@pytest.mark.slow
def test_the_grammar_writes_the_shipped_file(shipped: str) -> None:
    assert content() == shipped


def test_the_grammar_writes_the_beginning_of_each_split(shipped: str) -> None:
    written = content(pairs=300, held_out=40).splitlines()
    lines = {split: [line for line in shipped.splitlines() if line.startswith(f"{split}\t")] for split in SPLITS}
    assert written == list(
        itertools.chain.from_iterable(lines[split][: 300 if split == "train" else 40] for split in SPLITS)
    )
