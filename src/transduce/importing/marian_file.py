"""Marian's weights: `.npz`, and `.bin`, which Firefox's `.intgemm.alphas.bin` is too. Both hold the model's options.

    .bin: u64 version 1, u64 n · n × (u64 name length, type, rank, bytes) · names · i32 shapes · u64 gap · data

Matrices are (in, out). An int8 matrix of intgemm lies transposed, unless it is an embedding; its factor follows it:
w = q / factor. The factors of activations (`…_QuantMultA`) are left out: our int8 measures each vector itself.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from transduce.errors import ModelError
from transduce.importing.byte_reader import ByteReader, array_of
from transduce.importing.foreign_model import bytes_of
from transduce.tensor_file import Array

LARGEST_MODEL = 16 << 30
OPTIONS = "special:model.yml"
_FACTOR = "_QuantMultA"
_TYPES = {0x404: "<f4", 0x402: "<f2", 0x408: "<f8", 0x101: "|i1", 0x4101: "|i1", 0x4102: "<i2"}
_INTGEMM = (0x4101, 0x4102)
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '(?P<kind><f[248]|[|<]i1)', 'fortran_order': False, 'shape': \(([\d, ]{0,80})\)",
    re.DOTALL,
)
_EXPANSION, _ROOM = 4, 64 << 20
_LARGEST_OPTIONS = 1 << 20


@dataclass(frozen=True)
class MarianFile:
    """The matrices under Marian's names, shape (in, out), and the text of the options."""

    weights: dict[str, Array]
    options: str


def read_marian_file(path: Path) -> MarianFile:
    """Return the content of a file; raise ModelError if it is damaged."""
    read = _npz if path.suffix == ".npz" else _bin
    try:
        weights = dict(read(path))
    except (ValueError, OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        raise ModelError(f"{path} is damaged or is not a model of Marian.") from None
    options = weights.pop(OPTIONS, None)
    if options is None:
        raise ModelError(f"{path} has no {OPTIONS}, so it is no model that Marian trained.")
    if options.nbytes > _LARGEST_OPTIONS:
        raise ModelError(f"{path} has {options.nbytes:,} bytes of options; at most {_LARGEST_OPTIONS:,} are read.")
    text = options.tobytes().rstrip(b"\0").decode("utf-8", "replace")
    return MarianFile(weights, text)


def _npz(path: Path) -> Iterator[tuple[str, Array]]:
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > _EXPANSION * size + _ROOM:
            raise ValueError
        for member in members:
            yield member.filename.removesuffix(".npy"), _npy(archive.read(member))


def _npy(content: bytes) -> Array:
    head = _NPY.match(content)
    if head is None:
        raise ValueError
    shape = tuple(int(extent) for extent in head[3].decode().replace(",", " ").split())
    return array_of(memoryview(content)[10 + int.from_bytes(head[1], "little") :], head["kind"].decode(), shape)


def _bin(path: Path) -> Iterator[tuple[str, Array]]:
    reader = ByteReader(bytes_of(path, largest=LARGEST_MODEL))
    version, count = reader.number("Q"), reader.number("Q")
    if version != 1 or count * 32 > reader.left:
        raise ValueError
    heads = [tuple(reader.number("Q") for _ in range(4)) for _ in range(count)]
    names = [reader.text(length) for length, _, _, _ in heads]
    shapes = []
    for _, _, rank, _ in heads:
        if rank * 4 > reader.left:
            raise ValueError
        shapes.append(tuple(reader.number("i") for _ in range(rank)))
    reader.take(reader.number("Q"))
    for (_, kind, _, size), name, shape in zip(heads, names, shapes, strict=True):
        content = reader.take(size)
        if name.endswith(_FACTOR):
            continue
        if kind not in _TYPES or any(extent < 0 for extent in shape):
            raise ModelError(f"{path}: {name:.100} has the type {kind:#x}, which only one kind of processor reads.")
        used = prod(shape) * np.dtype(_TYPES[kind]).itemsize
        array = array_of(content[:used], _TYPES[kind], shape)
        yield name, _widened(name, array, content[used : used + 4]) if kind in _INTGEMM else array


def _widened(name: str, array: Array, factor: memoryview) -> Array:
    if array.ndim != 2:
        raise ValueError
    numbers = array.astype(np.float32) / np.frombuffer(factor, "<f4")[0]
    found: Array = numbers if "Wemb" in name else numbers.reshape(array.shape[::-1]).T
    return found
