"""safetensors files in numpy: named arrays behind a JSON header that is checked before memory is allocated.

    8 bytes: length of the header · header: {name: {"dtype", "shape", "data_offsets"}} · the arrays, one after the other

The safetensors package needs torch for bf16. numpy has no bf16 either: it is the upper half of a float32, written from
an array of uint16, and read as float32.
"""

import json
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.errors import ModelError

Array = NDArray[Any]
_LONGEST_HEADER = 16 << 20
_MOST_AXES, _LARGEST_EXTENT = 8, 1 << 48
_TYPES = {
    "U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "I32": "<i4", "BF16": "<u2", "F16": "<f2", "I16": "<i2",
    "I8": "|i1", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
"""In the order of their arrays in a file: by descending alignment, so that each array is aligned."""


class TensorFile(Mapping[str, Array]):
    """The arrays of a file, each read on access; bf16 becomes float32."""

    def __init__(self, path: Path, header: Mapping[str, Mapping[str, Any]]) -> None:
        self._header = header
        with path.open("rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._start = len(self._content) - max((entry["data_offsets"][1] for entry in header.values()), default=0)

    def __getitem__(self, name: str) -> Array:
        entry = self._header[name]
        begin, end = (self._start + offset for offset in entry["data_offsets"])
        array: Array = np.frombuffer(self._content[begin:end], dtype=_TYPES[entry["dtype"]])
        if hasattr(mmap, "MADV_DONTNEED"):  # the copy is enough: do not keep the file's pages in memory as well
            self._content.madvise(mmap.MADV_DONTNEED)
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        return array.reshape(entry["shape"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._header)

    def __len__(self) -> int:
        return len(self._header)


def read_tensors(path: Path) -> TensorFile:
    """Open a file after checking its header."""
    return TensorFile(path, read_header(path))


def read_header(path: Path) -> dict[str, dict[str, Any]]:
    """Return the header of a file, after checking it against the size of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ModelError(f"{path} is damaged: its header would be {length:,} bytes of a file of {size:,}.")
        raw = file.read(length)
    try:
        header: dict[str, dict[str, Any]] = json.loads(raw)
        if not all(isinstance(value, str) for value in header.pop("__metadata__", {}).values()):
            raise ValueError("metadata that are not text")
        if not all(name.isprintable() for name in header):
            raise ValueError("names with control codes")
        found = end_of_arrays(header)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"{path} is damaged: its header is not that of a safetensors file.") from None
    if found != size - 8 - length:
        raise ModelError(f"{path} is damaged: it should hold {found:,} bytes of weights, not {size - 8 - length:,}.")
    return header


def end_of_arrays(header: Mapping[str, Mapping[str, Any]]) -> int:
    """Return where the last array ends; raise ValueError unless the arrays fill the file without gap or overlap."""
    end = 0
    for entry in sorted(header.values(), key=lambda entry: tuple(entry["data_offsets"])):
        if len(entry["shape"]) > _MOST_AXES:
            raise ValueError("too many axes")
        count = np.dtype(_TYPES[entry["dtype"]]).itemsize
        for extent in entry["shape"]:
            if type(extent) is not int or not 0 <= extent < _LARGEST_EXTENT:
                raise ValueError("impossible shape")
            count *= extent
        if entry["data_offsets"] != [end, end + count] or {*map(type, entry["data_offsets"])} != {int}:
            raise ValueError("impossible offsets")
        end += count
    return end


def write_tensors(path: Path, arrays: Mapping[str, Array], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write a file, byte for byte as the safetensors package does; uint16 is bf16."""
    kinds = {np.dtype(code): kind for kind, code in _TYPES.items()}
    order = list(_TYPES)
    names = sorted(arrays, key=lambda name: (order.index(kinds[arrays[name].dtype]), name))
    header: dict[str, Mapping[str, Any]] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name in names:
        begin, end = end, end + arrays[name].nbytes
        shape = list(arrays[name].shape)
        header[name] = {"dtype": kinds[arrays[name].dtype], "shape": shape, "data_offsets": [begin, end]}
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        for name in names:
            file.write(np.ascontiguousarray(arrays[name]).data)


def upper_halves(array: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the nearest bf16 of each float32, ties to even."""
    bits = array.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)
