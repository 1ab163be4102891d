"""Reads numbers, texts and arrays from the bytes of a file, and never beyond their end."""

import struct
from math import prod

import numpy as np

from transduce.tensor_file import Array

_MOST_AXES = 8


class ByteReader:
    """A place in some bytes; every method reads there and moves on, or raises ValueError where the bytes end."""

    def __init__(self, content: bytes) -> None:
        self._content, self.position = memoryview(content), 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._content) - self.position

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes."""
        if not 0 <= count <= self.left:
            raise ValueError
        self.position += count
        return self._content[self.position - count : self.position]

    def number(self, code: str) -> int:
        """Return the next number, little-endian; `code` is that of `struct`, such as I for 32 bits."""
        return int(struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0])

    def text(self, length: int) -> str:
        """Return a text of `length` bytes, the last of which is NUL."""
        raw = bytes(self.take(length))
        if not raw.endswith(b"\0"):
            raise ValueError
        return raw[:-1].decode("utf-8")


def array_of(content: memoryview, kind: str, shape: tuple[int, ...]) -> Array:
    """Return a view of the bytes as an array; raise ValueError unless they fill the shape, which is never empty."""
    if len(shape) > _MOST_AXES or 0 in shape or len(content) != prod(shape) * np.dtype(kind).itemsize:
        raise ValueError
    return np.frombuffer(content, kind).reshape(shape)


def widened(halves: Array) -> Array:
    """Return bf16 numbers, given by their bits, as float32."""
    return (halves.astype(np.uint32) << 16).view(np.float32)
