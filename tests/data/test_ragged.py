from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.data.ragged import Ragged, RaggedWriter
from transduce.errors import DataError


def write(folder: Path, rows: list[list[int]], *, part: int = 2) -> None:
    with RaggedWriter(folder, "ids", np.dtype("<u2")) as writer:
        for start in range(0, len(rows), part):
            writer.append(rows[start : start + part])


@given(st.lists(st.lists(st.integers(0, 65535), max_size=7), max_size=11), st.integers(1, 5))
def test_rows_come_back_however_they_were_appended(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], part: int
) -> None:
    folder = tmp_path_factory.mktemp("ragged")
    write(folder, rows, part=part)
    ragged = Ragged(folder, "ids", np.dtype("<u2"))
    assert [ragged[n].tolist() for n in range(len(ragged))] == rows
    assert ragged.lengths().tolist() == [len(row) for row in rows]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=7))
def test_texts_come_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("ragged")
    with RaggedWriter(folder, "text") as writer:
        writer.append_texts(texts)
    ragged = Ragged(folder, "text")
    assert [ragged.text(n) for n in range(len(ragged))] == texts


def test_values_are_little_endian(tmp_path: Path) -> None:
    write(tmp_path, [[258]])
    assert (tmp_path / "ids.values").read_bytes() == bytes([2, 1])


@pytest.mark.parametrize(
    ("name", "bytes_left"), [("ids.values", 4), ("ids.ends", 8), ("ids.ends", 5), ("ids.values", 3)]
)
def test_a_file_cut_off_is_noticed(tmp_path: Path, name: str, bytes_left: int) -> None:
    write(tmp_path, [[1, 2], [3]])
    with (tmp_path / name).open("r+b") as file:
        file.truncate(bytes_left)
    with pytest.raises(DataError, match="start again"):
        Ragged(tmp_path, "ids", np.dtype("<u2"))
