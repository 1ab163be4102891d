r"""One file of a corpus: decompressed, decoded, split into lines and hashed (SHA-256) in one pass.

A line ends at \n or \r\n and nowhere else. U+2028, U+0085, a vertical tab and a lone \r are text: a reader that splits
at one of them pairs every later line with the wrong translation.
"""

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from transduce.data.formats.zstandard_frames import ZstandardFrames
from transduce.errors import DataError

COMPRESSIONS = (".gz", ".xz", ".zst", ".bz2")
_MOST_LINE_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def without_tilde(name: str) -> Path:
    """Return a path with the home of a user in place of `~`, unless that user has none."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


@dataclass(frozen=True)
class Fingerprint:
    """A file's state when it was read: size and time for a quick comparison, the hash for a certain one."""

    path: str
    bytes: int
    modified_ns: int
    sha256: str


class CorpusFile:
    """A file of a corpus, to be read once from start to end."""

    def __init__(self, path: Path, *, on_read: Callable[[int], None] = lambda count: None) -> None:
        """`on_read` is called with the size of every read, in bytes of the file itself, compressed or not."""
        self.path = path
        self._on_read = on_read
        self._digest = hashlib.sha256()
        self._lines = 0

    @property
    def kind(self) -> str:
        """Return the name's ending in lower case, without that of a compression: `.tsv` for `x.TSV.gz`."""
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSIONS), "")

    def fingerprint(self) -> Fingerprint:
        """Return the file's fingerprint; call it after reading the file to its end."""
        status = self.path.stat()
        return Fingerprint(str(self.path.resolve()), status.st_size, status.st_mtime_ns, self._digest.hexdigest())

    def require(self) -> None:
        """Raise DataError if the file does not exist."""
        if not self.path.exists():
            raise DataError(self._missing())

    def _missing(self) -> str:
        return f"{self.path} does not exist. Check the name and the folder."

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Yield the decompressed file as a stream; any fault of the file becomes a DataError."""
        try:
            with self.path.open("rb", buffering=0) as file:
                before = self.path.stat()
                observed = io.BufferedReader(_ObservedFile(file, self._observe), _CHUNK_BYTES)
                yield _decompressed(observed, self.path.suffix.lower())
                while observed.read(_CHUNK_BYTES):  # the hash is that of the whole file
                    pass
            after = self.path.stat()
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise DataError(f"{self.path} changed while it was read. Start again when it is complete.")
        except FileNotFoundError as fault:
            raise DataError(self._missing()) from fault
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as fault:
            raise DataError(self._explain(fault)) from fault

    def lines(self) -> Iterator[str]:
        """Yield the lines without their ends, from UTF-8, or from UTF-16 with a byte order mark."""
        with self.opened() as stream:
            first = stream.readline(_MOST_LINE_BYTES)
            self._refuse_other_encodings(first)
            if first.startswith(_UTF16_MARKS):
                lines = self._utf16_lines(first, stream)
            else:
                lines = self._utf8_lines(first.removeprefix(codecs.BOM_UTF8), stream)
            for line in lines:
                self._lines += 1
                yield line
        if self._lines == 0:
            raise DataError(f"{self.path} is empty. Give a file with at least one line, or leave it out.")

    def _utf8_lines(self, first: bytes, stream: BinaryIO) -> Iterator[str]:
        line = first
        while line:
            if len(line) == _MOST_LINE_BYTES and not line.endswith(b"\n"):
                raise DataError(self._too_long())
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as fault:
                raise DataError(
                    f"{self.path}:{self._lines + 1}: byte {fault.start + 1} of this line, 0x{line[fault.start]:02x}, "
                    "is not UTF-8. Convert the file to UTF-8 (it may be Latin-1 or Windows-1252), or fix the line."
                ) from fault
            yield text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
            line = stream.readline(_MOST_LINE_BYTES)

    def _utf16_lines(self, first: bytes, stream: BinaryIO) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-16")()
        rest = ""
        chunk = first
        while True:
            try:
                rest += decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as fault:
                raise DataError(
                    f"{self.path}: invalid UTF-16 after line {self._lines:,} ({fault.reason}). "
                    "Fix the file, or convert it to UTF-8."
                ) from fault
            *whole, rest = rest.split("\n")
            for line in whole:
                yield line.removesuffix("\r")
            if len(rest) > _MOST_LINE_BYTES:
                raise DataError(self._too_long())
            if not chunk:
                break
            chunk = stream.read(_CHUNK_BYTES)
        if rest:
            yield rest

    def _refuse_other_encodings(self, first: bytes) -> None:
        if _is_utf32(first):
            raise DataError(f"{self.path} is UTF-32. Convert it to UTF-8.")
        if b"\0" in first[:2]:
            raise DataError(f"{self.path} looks like UTF-16 without a byte order mark. Convert it to UTF-8.")

    def _observe(self, chunk: memoryview) -> None:
        self._digest.update(chunk)
        self._on_read(len(chunk))

    def _explain(self, fault: Exception) -> str:
        if isinstance(fault, IsADirectoryError):
            return f"{self.path} is a folder. Name the files in it."
        if isinstance(fault, PermissionError):
            return f"{self.path} cannot be read by this user. Change its permissions."
        after = f" after line {self._lines:,}" if self._lines else ""
        if self.path.suffix.lower() in COMPRESSIONS:
            return (
                f"{self.path} is damaged or cut off{after} ({fault}). Download or compress it again; if it is not "
                f"compressed, remove {self.path.suffix} from its name."
            )
        return f"{self.path} cannot be read{after} ({fault}). Copy it again, or check the disk."

    def _too_long(self) -> str:
        return (
            f"{self.path}:{self._lines + 1}: this line is longer than {_MOST_LINE_BYTES >> 20} MiB. "
            "Give text with one sentence per line."
        )


class _ObservedFile(io.RawIOBase):
    """A file that passes every chunk it reads to a function."""

    def __init__(self, file: io.FileIO, observe: Callable[[memoryview], None]) -> None:
        self._file, self._observe = file, observe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer) or 0
        self._observe(memoryview(buffer)[:count])
        return count


def _decompressed(stream: BinaryIO, suffix: str) -> BinaryIO:
    openers: dict[str, Callable[[BinaryIO], io.RawIOBase | io.BufferedIOBase]] = {
        ".gz": lambda compressed: gzip.GzipFile(fileobj=compressed),
        ".xz": lzma.LZMAFile,
        ".bz2": bz2.BZ2File,
        ".zst": ZstandardFrames,
    }
    opener = openers.get(suffix)
    return stream if opener is None else io.BufferedReader(opener(stream), _CHUNK_BYTES)


def _is_utf32(first: bytes) -> bool:
    """Return whether a first line is UTF-32; UTF-16 that begins with U+0000 has the same first four bytes."""
    marks = {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"}
    encoding = marks.get(first[:4])
    if encoding is None:
        return False
    try:
        text = first[4 : len(first) - len(first) % 4].decode(encoding)
    except UnicodeDecodeError:
        return False
    return bool(text) and "\0" not in text
