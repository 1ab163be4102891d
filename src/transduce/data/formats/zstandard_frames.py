"""A Zstandard file as a stream that raises an error if the file is cut off.

The library's own stream reader treats any end of file as the end of the data, so it would read half a download without
an error.
"""

import io
from typing import BinaryIO

from transduce.extras import require

# Four compressed bytes can hold 128 KiB, so the size of a chunk bounds the memory that decompressing it takes.
_CHUNK_BYTES = 4096


class ZstandardFrames(io.RawIOBase):
    """The decompressed content of all frames of a Zstandard stream, one after the other."""

    def __init__(self, stream: BinaryIO) -> None:
        require(("zstandard",), purpose="Reading .zst files", extra="train")
        import zstandard

        self._stream = stream
        self._decompressor = zstandard.ZstdDecompressor()
        self._fault = zstandard.ZstdError
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._compressed = b""
        self._ready = b""

    def readable(self) -> bool:
        """Return True: this stream is for reading."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer from one chunk; return 0 at the end, raise EOFError if the last frame is cut off."""
        while not self._ready:
            compressed = self._compressed or self._stream.read(_CHUNK_BYTES)
            if not compressed:
                if self._frame is not None:
                    raise EOFError("the last frame ends too early")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            try:
                self._ready = self._frame.decompress(compressed)
            except self._fault as fault:
                raise OSError(str(fault)) from None
            self._compressed = b""
            if self._frame.eof:
                self._compressed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        memoryview(buffer)[:count], self._ready = self._ready[:count], self._ready[count:]
        return count
