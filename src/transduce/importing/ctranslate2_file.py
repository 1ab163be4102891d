"""CTranslate2's `model.bin`: variables by name, read from its bytes.

    u32 version 2 … 6 · spec, u32 revision · u32 n · n × (name, u8 rank, u32 shape …, type, data) · aliases (from 3)

A text is u16 length, bytes, NUL. Since version 4 the type is u8 type, u32 bytes; before, u8 item size, u32 items.
Integers are weights in fewer bits: w = q / scale, with `weight_scale` for each row (int8) or for all (int16).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transduce.errors import ModelError
from transduce.importing.byte_reader import ByteReader, array_of, widened
from transduce.importing.foreign_model import bytes_of
from transduce.tensor_file import Array

LARGEST_MODEL = 16 << 30
_TYPES = {0: "<f4", 1: "|i1", 2: "<i2", 3: "<i4", 4: "<f2", 5: "<u2"}
_BF16 = 5
_OLD_TYPES = {4: "<f4", 2: "<i2", 1: "|i1"}
_OLD_INT16_SCALE = 1000.0


@dataclass(frozen=True)
class CTranslate2File:
    """The content of a `model.bin`: the version, the specification and its revision, and the variables."""

    version: int
    spec: str
    revision: int
    variables: dict[str, Array]
    """Weights are floating-point numbers; options are arrays without axes."""


def read_model_bin(path: Path) -> CTranslate2File:
    """Return the content of the file; raise ModelError if it is damaged or too old."""
    reader = ByteReader(bytes_of(path, largest=LARGEST_MODEL))
    try:
        version = reader.number("I")
        if not 2 <= version <= 6:
            raise ModelError(
                f"{path} has binary version {version}; versions 2 to 6 are read. Convert the original model again with "
                "CTranslate2 4."
            )
        spec, revision = reader.text(reader.number("H")), reader.number("I")
        variables: dict[str, Array] = {}
        for _ in range(reader.number("I")):
            name = reader.text(reader.number("H"))
            variables[name] = _variable(reader, version)
        floats = {name: _in_floats(name, variables) for name in variables if not name.endswith("_scale")}
        floats |= {name: array for name, array in variables.items() if name.endswith("queries_scale")}
        for _ in range(reader.number("I") if version >= 3 else 0):
            alias, name = reader.text(reader.number("H")), reader.text(reader.number("H"))
            if name in floats:
                floats[alias] = floats[name]
        if reader.left:
            raise ValueError
    except (ValueError, KeyError):
        raise ModelError(f"{path} is damaged or is not a model of CTranslate2.") from None
    return CTranslate2File(version, spec, revision, floats)


def _variable(reader: ByteReader, version: int) -> Array:
    shape = tuple(reader.number("I") for _ in range(reader.number("B")))
    if version >= 4:
        kind, size = reader.number("B"), reader.number("I")
        array = array_of(reader.take(size), _TYPES[kind], shape)
        return widened(array) if kind == _BF16 else array
    item, count = reader.number("B"), reader.number("I")
    return array_of(reader.take(item * count), _OLD_TYPES[item], shape)


def _in_floats(name: str, variables: dict[str, Array]) -> Array:
    array, scale = variables[name], variables.get(f"{name}_scale")
    if not array.ndim or array.dtype.kind == "f":
        return array
    if array.dtype == np.int8:
        if scale is None or scale.size not in (1, len(array)):
            raise ValueError
        factors = scale.reshape(-1, *[1] * (array.ndim - 1))
    else:
        factors = np.full((), _OLD_INT16_SCALE, np.float32) if scale is None else scale.reshape(())
    found: Array = array.astype(np.float32) / factors
    return found
