"""A Zstandard file as a stream that notices when it was cut off.

The library's own stream reader takes the end of the file for the end of the data, wherever it comes; a corpus half
downloaded would then train without a word.
"""

import io
from typing import BinaryIO

import zstandard

# One block of four bytes can stand for 128 KiB, so the part read at a time bounds what unpacking it may take.
_PART = 4096


class ZstandardFrames(io.RawIOBase):
    """The content of all frames of a Zstandard stream, one after the other."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed = b""
        self._ready = b""

    def readable(self) -> bool:
        """Return that this is for reading."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer as far as one part goes; 0 at the end. EOFError if the last frame is not whole."""
        while not self._ready:
            packed = self._packed or self._stream.read(_PART)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the last frame ends too early")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._ready = self._frame.decompress(packed)
            self._packed = b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        memoryview(buffer)[:count], self._ready = self._ready[:count], self._ready[count:]
        return count
