"""A document to fill in: its content as UTF-8, the gaps in it, and the splices that fill them."""

import codecs
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from transduce.data.formats.charsets import require_charset
from transduce.data.formats.pair import Selection
from transduce.errors import DataError

TRANSLATED = "translated already"
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,100}?\bencoding\s*=\s*["']([\w.:-]{1,40})["']""")


class FindEncoding(Protocol):
    """Finds the encoding that a file without a byte order mark declares; `path` is for error messages."""

    def __call__(self, content: bytes, *, path: Path) -> str:
        """Return the encoding's name."""


class Splice(NamedTuple):
    """Text that replaces the bytes from `start` to `end` of a document."""

    start: int
    end: int
    text: str


class DoesNotFitError(Exception):
    """A translation cannot be written into its gap. The message says why; the gap stays empty."""


@dataclass(frozen=True)
class Gap:
    """A place for a translation: the texts to translate, or the reason to skip it."""

    location: str
    """The file and line, for reports."""
    texts: tuple[str, ...] = ()
    """One text, or several that are filled in together or not at all."""
    fill: Callable[[Sequence[str]], list[Splice]] = lambda translations: []
    """Returns the splices for the texts' translations; raises DoesNotFitError if they cannot be written here."""
    skip_reason: str = ""
    """Empty if the gap is to be filled."""
    untagged: "Gap | None" = None
    """The same gap with texts without tags, for a model that cannot copy them."""
    shared_splice: Splice | None = None
    """A splice that several gaps share, applied once if any of them is filled: it names the target language."""


@dataclass(frozen=True)
class Document:
    """A document's content in UTF-8, and how to write it back."""

    path: Path
    content: bytes
    encoding: str
    byte_order_mark: bytes
    errors: Literal["strict", "xmlcharrefreplace"]
    """What to do with a character that `encoding` lacks, as in `str.encode`."""
    selection: Selection
    overwrites: bool
    """Whether existing translations are replaced."""
    copies_tags: bool = True
    """Whether texts are translated with tags as placeholders; if not, `tag_projection` puts the tags back."""

    def text(self, start: int, end: int) -> str:
        """Return the content from byte `start` to byte `end`."""
        return self.content[start:end].decode("utf-8")

    def location(self, offset: int) -> str:
        """Return the path and line of a byte, for reports and errors."""
        return f"{self.path}:{bisect_left(self._line_ends, offset) + 1}"

    def fault(self, offset: int, what: str) -> DataError:
        """Return the error for a document that is malformed at a byte: path, line and column, then `what`."""
        line = bisect_left(self._line_ends, offset)
        start = self._line_ends[line - 1] + 1 if line else 0
        column = len(self.content[start:offset].decode("utf-8", "replace")) + 1
        return DataError(f"{self.path}:{line + 1}:{column}: {what}")

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the offset of every line, and the line without its end."""
        start = 0
        for line in self.content.split(b"\n"):
            yield start, line.removesuffix(b"\r")
            start += len(line) + 1

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer(rb"\n", self.content)]

    def with_splices(self, splices: Sequence[Splice]) -> bytes:
        """Return the document in its own encoding with these splices applied."""
        pieces: list[bytes] = []
        done = 0
        for splice in sorted(splices):
            assert done <= splice.start <= splice.end, "splices must not overlap"
            pieces += [self.content[done : splice.start], splice.text.encode("utf-8")]
            done = splice.end
        whole = b"".join([*pieces, self.content[done:]])
        if self.encoding != "utf-8":
            whole = whole.decode("utf-8").encode(self.encoding, self.errors)
        return self.byte_order_mark + whole

    def require_encodable(self, text: str) -> None:
        """Raise DoesNotFitError if the document's encoding lacks a character of `text`."""
        if self.errors == "strict":
            try:
                text.encode(self.encoding)
            except UnicodeEncodeError as fault:
                raise DoesNotFitError(f"the file's encoding, {self.encoding}, lacks {text[fault.start]!r}") from None


def xml_encoding(content: bytes, *, path: Path) -> str:
    """Return the encoding that an XML file without a byte order mark declares."""
    declared = _XML_ENCODING.match(content)
    return declared[1].decode("ascii") if declared else "utf-8"


def decode_document(
    raw: bytes, *, path: Path, selection: Selection, overwrites: bool, encoding: FindEncoding, is_markup: bool
) -> Document:
    """Decode a document; in markup, a character that the encoding lacks is written as a character reference."""
    mark = next((mark for mark in _BYTE_ORDER_MARKS if raw.startswith(mark)), b"")
    name = _BYTE_ORDER_MARKS[mark] if mark else require_charset(encoding(raw, path=path), path=path)
    try:
        text = raw[len(mark) :].decode(name)
        is_reversible = text.encode(name) == raw[len(mark) :]
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        raise DataError(
            f"{path}:{line}: byte 0x{raw[fault.start]:02x} is not {name}, the encoding of this file. Convert the file "
            "to UTF-8."
        ) from None
    if not is_reversible:
        raise DataError(f"{path} cannot be written back in {name} without changes. Convert it to UTF-8.")
    return Document(
        path=path,
        content=text.encode("utf-8"),
        encoding=codecs.lookup(name).name,
        byte_order_mark=mark,
        errors="xmlcharrefreplace" if is_markup else "strict",
        selection=selection,
        overwrites=overwrites,
    )
