import json
from pathlib import Path

import numpy as np
import pytest

from transduce.data.token_store import TokenStore, token_store_written
from transduce.errors import DataError


def build(folder: Path, *, vocabulary_size: int = 300, keeps_originals: bool = False) -> TokenStore:
    with token_store_written(folder, vocabulary_size=vocabulary_size, keeps_originals=keeps_originals) as writer:
        writer.append(
            [[5, 6, 3], [7, 3]],
            [[8, 3], [9, 10, 11, 3]],
            texts=[("a b", "c"), ("d", "é f")],
            originals=[("A", "B"), ("C", "D")],
        )
        writer.append([[3]], [[12, 3]], texts=[("", "g")], originals=[("", "G")])
    return TokenStore.open(folder)


def test_pairs_come_back_as_they_were_written(tmp_path: Path) -> None:
    store = build(tmp_path / "store")
    assert len(store) == 3
    assert [store.source(n).tolist() for n in range(3)] == [[5, 6, 3], [7, 3], [3]]
    assert [store.target(n).tolist() for n in range(3)] == [[8, 3], [9, 10, 11, 3], [12, 3]]
    assert store.source_lengths.tolist() == [3, 2, 1]
    assert store.target_lengths.tolist() == [2, 4, 2]
    assert store.text(1) == ("d", "é f")


@pytest.mark.parametrize(("vocabulary_size", "width"), [(65_536, 2), (65_537, 4)])
def test_ids_take_two_bytes_where_the_vocabulary_allows(tmp_path: Path, vocabulary_size: int, width: int) -> None:
    folder = tmp_path / "store"
    with token_store_written(folder, vocabulary_size=vocabulary_size) as writer:
        writer.append([[vocabulary_size - 1]], [[3]], texts=[("a", "b")])
    assert (folder / "source.values").stat().st_size == width
    assert TokenStore.open(folder).source(0).tolist() == [vocabulary_size - 1]


def test_originals_are_kept_where_asked(tmp_path: Path) -> None:
    assert build(tmp_path / "kept", keeps_originals=True).original(1) == ("C", "D")
    assert not (build(tmp_path / "not").folder / "originals.values").exists()


def test_a_store_may_be_empty(tmp_path: Path) -> None:
    with token_store_written(tmp_path / "store", vocabulary_size=5):
        pass
    store = TokenStore.open(tmp_path / "store")
    assert len(store) == 0
    assert store.source_lengths.dtype == np.int64


def test_a_store_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def build_halfway() -> None:
        with token_store_written(tmp_path / "store", vocabulary_size=5) as writer:
            writer.append([[3]], [[3]], texts=[("", "")])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_halfway()
    assert list(tmp_path.iterdir()) == []


def test_the_same_pairs_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        build(tmp_path / name)
    assert (tmp_path / "a" / "manifest.json").read_bytes() == (tmp_path / "b" / "manifest.json").read_bytes()


@pytest.mark.parametrize("change", ["missing", "other format", "not json", "fewer pairs"])
def test_what_is_no_store_is_refused_with_the_way_out(tmp_path: Path, change: str) -> None:
    folder = build(tmp_path / "store").folder
    description = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    if change == "missing":
        (folder / "store.json").unlink()
    elif change == "not json":
        (folder / "store.json").write_text("[", encoding="utf-8")
    else:
        description |= {"format": 99} if change == "other format" else {"pairs": 2}
        (folder / "store.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(DataError, match="Delete it and start again"):
        TokenStore.open(folder)
