r"""One file of a corpus: unpacked, decoded and split into lines as it streams past, its SHA-256 taken on the way.

A line ends at \n or \r\n and nowhere else: U+2028, U+0085, a vertical tab or a lone \r are text, and a reader that
splits there puts every later line beside the wrong translation.
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

import zstandard

from transduce.data.formats.zstandard_frames import ZstandardFrames
from transduce.errors import DataError

COMPRESSIONS = (".gz", ".xz", ".zst", ".bz2")
_LONGEST_LINE = 64 << 20
_PART = 1 << 16
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Fingerprint:
    """What a file was when it was read: enough to notice cheaply, and to prove, that it is still the same."""

    path: str
    bytes: int
    modified_ns: int
    sha256: str


class CorpusFile:
    """A file of a corpus, read once from start to end."""

    def __init__(self, path: Path, *, on_read: Callable[[int], None] = lambda count: None) -> None:
        """`on_read` is told how many bytes more were read: what a progress bar counts, packed or not."""
        self.path = path
        self._on_read = on_read
        self._digest = hashlib.sha256()
        self._lines = 0

    @property
    def kind(self) -> str:
        """Return what the name ends in, in lower case and without the packing's part: `.tsv` of `x.TSV.gz`."""
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSIONS), "")

    def fingerprint(self) -> Fingerprint:
        """Return what the file was; call it when the file has been read to its end."""
        status = self.path.stat()
        return Fingerprint(str(self.path.resolve()), status.st_size, status.st_mtime_ns, self._digest.hexdigest())

    def require(self) -> None:
        """Refuse a file that is not there, before anything is done that counts on it."""
        if not self.path.exists():
            raise DataError(self._absence())

    def _absence(self) -> str:
        return f"{self.path} does not exist. Check the name and the folder it is looked for in."

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Yield the file's bytes, unpacked. Whatever is wrong with the file itself becomes a DataError."""
        try:
            with self.path.open("rb", buffering=0) as file:
                before = self.path.stat()
                watched = io.BufferedReader(_Watched(file, self._watch), _PART)
                yield _unpacked(watched, self.path.suffix.lower())
                while watched.read(_PART):
                    pass
            after = self.path.stat()
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise DataError(f"{self.path} was changed while it was read. Start again when it is complete.")
        except FileNotFoundError as fault:
            raise DataError(self._absence()) from fault
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as fault:
            raise DataError(self._damage(fault)) from fault

    def lines(self) -> Iterator[str]:
        """Yield the lines as text, without their ends. UTF-8, or UTF-16 if it says so with a byte order mark."""
        with self.opened() as stream:
            first = stream.readline(_LONGEST_LINE)
            self._refuse_foreign_start(first)
            if first.startswith(_UTF16):
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
            if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                raise DataError(self._too_long())
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as fault:
                raise DataError(
                    f"{self.path}:{self._lines + 1}: byte {fault.start + 1} of this line, 0x{line[fault.start]:02x}, "
                    "is no UTF-8. Convert the file to UTF-8 (it may be Latin-1 or Windows-1252), or mend the line."
                ) from fault
            yield text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
            line = stream.readline(_LONGEST_LINE)

    def _utf16_lines(self, first: bytes, stream: BinaryIO) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-16")()
        rest = ""
        part = first
        while True:
            try:
                rest += decoder.decode(part, final=not part)
            except UnicodeDecodeError as fault:
                raise DataError(
                    f"{self.path}: after line {self._lines:,} there is no valid UTF-16 ({fault.reason}). "
                    "Mend the file, or convert it to UTF-8."
                ) from fault
            *whole, rest = rest.split("\n")
            for line in whole:
                yield line.removesuffix("\r")
            if len(rest) > _LONGEST_LINE:
                raise DataError(self._too_long())
            if not part:
                break
            part = stream.read(_PART)
        if rest:
            yield rest

    def _refuse_foreign_start(self, first: bytes) -> None:
        if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            raise DataError(f"{self.path} is UTF-32. Convert it to UTF-8.")
        if b"\0" in first[:2]:
            raise DataError(f"{self.path} looks like UTF-16 without a byte order mark. Convert it to UTF-8.")

    def _watch(self, part: memoryview) -> None:
        self._digest.update(part)
        self._on_read(len(part))

    def _damage(self, fault: Exception) -> str:
        if isinstance(fault, IsADirectoryError):
            return f"{self.path} is a folder. Name the files in it."
        if isinstance(fault, PermissionError):
            return f"{self.path} may not be read by this user. Change its permissions."
        after = f" after line {self._lines:,}" if self._lines else ""
        if self.path.suffix.lower() in COMPRESSIONS:
            return (
                f"{self.path} is damaged or cut off{after} ({fault}). Fetch or pack it again; if it is not packed at "
                f"all, take {self.path.suffix} off its name."
            )
        return f"{self.path} cannot be read{after} ({fault}). Copy it again, or check the disk."

    def _too_long(self) -> str:
        return (
            f"{self.path}:{self._lines + 1}: this line is longer than {_LONGEST_LINE >> 20} MiB. "
            "Is this text with one sentence per line?"
        )


class _Watched(io.RawIOBase):
    """A file whose every byte is shown to somebody as it is read."""

    def __init__(self, file: io.FileIO, watch: Callable[[memoryview], None]) -> None:
        self._file, self._watch = file, watch

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer) or 0
        self._watch(memoryview(buffer)[:count])
        return count


def _unpacked(stream: BinaryIO, suffix: str) -> BinaryIO:
    openers: dict[str, Callable[[BinaryIO], io.RawIOBase | io.BufferedIOBase]] = {
        ".gz": lambda packed: gzip.GzipFile(fileobj=packed),
        ".xz": lzma.LZMAFile,
        ".bz2": bz2.BZ2File,
        ".zst": ZstandardFrames,
    }
    opener = openers.get(suffix)
    return stream if opener is None else io.BufferedReader(opener(stream), _PART)
