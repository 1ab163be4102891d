"""Rows of unequal length in two files: the values of all rows end to end, and the end of each row.

The files are written as a stream and read through a memory map, so token ids and texts of a corpus may be larger than
RAM. Values are little-endian on every machine.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transduce.errors import DataError

_ENDS = np.dtype("<u8")
_TEXT = np.dtype("u1")
_PART = 1 << 20


class RaggedWriter:
    """Appends rows to the files `<name>.values` and `<name>.ends` of a folder."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype[Any] = _TEXT) -> None:
        self._dtype = dtype.newbyteorder("<")
        self._values = (folder / f"{name}.values").open("wb")
        self._ends = (folder / f"{name}.ends").open("wb")
        self._end = 0

    def append(self, rows: Sequence[Sequence[int]]) -> None:
        """Add rows of numbers."""
        lengths = np.fromiter((len(row) for row in rows), dtype=_ENDS, count=len(rows))
        values = np.fromiter((value for row in rows for value in row), dtype=self._dtype, count=int(lengths.sum()))
        self._write(values.tobytes(), lengths)

    def append_texts(self, texts: Sequence[str]) -> None:
        """Add rows of text, as UTF-8."""
        encoded = [text.encode("utf-8") for text in texts]
        self._write(b"".join(encoded), np.fromiter((len(row) for row in encoded), dtype=_ENDS, count=len(encoded)))

    def _write(self, values: bytes, lengths: NDArray[Any]) -> None:
        self._values.write(values)
        ends = self._end + np.cumsum(lengths, dtype=_ENDS)
        self._ends.write(ends.astype(_ENDS).tobytes())
        self._end = int(ends[-1]) if len(ends) else self._end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._values.close()
        self._ends.close()


class Ragged:
    """Rows of unequal length, read from disk on access."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype[Any] = _TEXT) -> None:
        self._values = map_array(folder / f"{name}.values", dtype.newbyteorder("<"))
        self._ends = map_array(folder / f"{name}.ends", _ENDS)
        if len(self._ends) and int(self._ends[-1]) != len(self._values):
            raise DataError(
                f"{folder / name}.values holds {len(self._values):,} values, not {int(self._ends[-1]):,}. "
                f"Delete {folder} and start again to build it again."
            )

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> NDArray[Any]:
        start = int(self._ends[row - 1]) if row else 0
        return np.asarray(self._values[start : int(self._ends[row])])

    def text(self, row: int) -> str:
        """Return a row of text."""
        return self[row].tobytes().decode("utf-8")

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of values of every row."""
        return np.asarray(np.diff(self._ends, prepend=self._ends.dtype.type(0)), dtype=np.int64)

    def is_below(self, limit: int) -> bool:
        """Return whether every value is below `limit`, and no row ends before it begins."""
        parts = (self._values[start : start + _PART] for start in range(0, len(self._values), _PART))
        return all(int(part.max()) < limit for part in parts) and bool((self.lengths() >= 0).all())


def map_array(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers in a file as a memory map, or an empty array for an empty file, which cannot be mapped."""
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise DataError(
            f"{path} was cut off at {size:,} bytes. Delete {path.parent} and start again to build it again."
        )
    # A plain view of the map: slicing np.memmap costs several times more, and every batch slices hundreds of rows.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r")) if size else np.empty(0, dtype=dtype)
