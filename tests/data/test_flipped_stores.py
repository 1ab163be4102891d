"""A prepared corpus with flipped bits is built again or refused; it never trains to other weights."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from transduce.data.config import DataConfig
from transduce.data.preparation import Prepared, prepare
from transduce.data.token_store import TokenStore, token_store_written
from transduce.errors import DataError
from transduce.files import write_manifest


def prepared(corpus: Path, folder: Path) -> Prepared:
    config = DataConfig(train=[str(corpus)], source_language="en", target_language="de", held_out_valid=3)
    return prepare(config, folder, vocabulary_size=300)


def content(store: TokenStore) -> list[tuple[list[int], list[int], tuple[str, str]]]:
    return [(store.source(n).tolist(), store.target(n).tolist(), store.text(n)) for n in range(len(store))]


def flip(file: Path, chance: random.Random) -> None:
    raw = bytearray(file.read_bytes())
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    file.write_bytes(raw)


def test_a_flipped_bit_anywhere_gives_the_same_corpus(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("".join(f"a house {n}\tein Haus {n}\n" for n in range(40)), encoding="utf-8")
    whole = prepared(corpus, tmp_path / "whole")
    files = [file for file in sorted(whole.folder.rglob("*")) if file.is_file() and file.stat().st_size]
    chance = random.Random(7)
    for file in [name for name in files if name.name not in ("dropped.tsv", ".lock")]:
        folder = tmp_path / "flipped"
        shutil.copytree(whole.folder, folder)
        flip(folder / file.relative_to(whole.folder), chance)
        found = prepared(corpus, folder)
        assert content(found.train) == content(whole.train), file.name
        assert found.tokenizers.fingerprint == whole.tokenizers.fingerprint, file.name
        assert found.report == whole.report, file.name
        shutil.rmtree(folder)


def test_a_flipped_bit_of_a_store_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with token_store_written(tmp_path / "store", vocabulary_size=300) as writer:
        writer.append([[5, 3]], [[6, 3]], texts=[("a", "b")])
    flip(tmp_path / "store" / "target.values", random.Random(1))
    with pytest.raises(DataError, match=r"damaged: .*target\.values does not match its SHA-256\. Delete it"):
        TokenStore.open(tmp_path / "store")


def test_ids_beyond_the_vocabulary_are_refused_even_if_the_hashes_fit(tmp_path: Path) -> None:
    with token_store_written(tmp_path / "store", vocabulary_size=300) as writer:
        writer.append([[5, 3]], [[6, 3]], texts=[("a", "b")])
    (tmp_path / "store" / "source.values").write_bytes(np.array([300, 3], dtype="<u2").tobytes())
    write_manifest(tmp_path / "store")
    with pytest.raises(DataError, match="ids beyond its vocabulary"):
        TokenStore.open(tmp_path / "store")
