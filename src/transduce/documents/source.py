"""A document to fill in: its text as UTF-8 whatever it was in, its gaps, and the pieces that are put into them."""

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from transduce.data.formats.corpus_file import COMPRESSIONS
from transduce.data.formats.pair import Selection
from transduce.errors import DataError

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,100}?\bencoding\s*=\s*["']([\w.:-]{1,40})["']""")


class FindEncoding(Protocol):
    """Finds out what a file without a byte order mark is in, by its content; its path is for errors."""

    def __call__(self, content: bytes, *, path: Path) -> str:
        """Return the encoding's name."""


class Splice(NamedTuple):
    """A text that takes the place of the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


class DoesNotFitError(Exception):
    """A translation cannot be written into its gap; the message says why, and the gap stays empty."""


@dataclass(frozen=True)
class Gap:
    """A place without a translation, or one that is left as it is for a reason."""

    where: str
    texts: tuple[str, ...] = ()
    """What is to be translated, one text or several that stand or fall together."""
    fill: Callable[[Sequence[str]], list[Splice]] = lambda translations: []
    """What becomes of the document; DoesNotFitError if the translations cannot stand there."""
    left: str = ""
    """Why it is left, if it is."""
    once: Splice | None = None
    """What must be said in the document as soon as one of several gaps is filled, such as the target language."""


EXISTING = "translated already"


@dataclass(frozen=True)
class Source:
    """A document's content in UTF-8, and what is wanted of it."""

    path: Path
    content: bytes
    encoding: str
    mark: bytes
    """The byte order mark that it began with."""
    errors: Literal["strict", "xmlcharrefreplace"]
    """How to write what its encoding does not have."""
    selection: Selection
    overwrites: bool

    def text(self, start: int, end: int) -> str:
        """Return a stretch of the content."""
        return self.content[start:end].decode("utf-8")

    def with_splices(self, splices: Sequence[Splice]) -> bytes:
        """Return the document with these pieces in it, in its own encoding."""
        pieces: list[bytes] = []
        done = 0
        for splice in sorted(splices):
            assert done <= splice.start <= splice.end, "pieces must not overlap"
            pieces += [self.content[done : splice.start], splice.text.encode("utf-8")]
            done = splice.end
        whole = b"".join([*pieces, self.content[done:]])
        return self.mark + (
            whole if self.encoding == "utf-8" else whole.decode("utf-8").encode(self.encoding, self.errors)
        )

    def require_encodable(self, text: str) -> None:
        """Refuse a text that the document's encoding has no characters for."""
        if self.errors == "strict":
            try:
                text.encode(self.encoding)
            except UnicodeEncodeError as fault:
                raise DoesNotFitError(f"{self.encoding}, which the file is in, has no {text[fault.start]!r}") from None


def xml_encoding(content: bytes, *, path: Path) -> str:
    """Return the encoding that an XML file without a byte order mark declares."""
    declared = _DECLARED.match(content)
    return declared[1].decode("ascii") if declared else "utf-8"


def read_content(path: Path) -> bytes:
    """Return what a document's file holds."""
    if path.suffix.lower() in COMPRESSIONS:
        raise DataError(f"{path} is packed. Unpack it first: a file is filled in as it stands.")
    try:
        return path.read_bytes()
    except OSError as fault:
        raise DataError(f"{path} cannot be read ({fault.strerror}). Check its name and permissions.") from None


def decode_source(
    raw: bytes, *, path: Path, selection: Selection, overwrites: bool, encoding: FindEncoding, is_markup: bool
) -> Source:
    """Return a document; `encoding` finds out what it is in, and markup may write a character by its number."""
    mark = next((mark for mark in _MARKS if raw.startswith(mark)), b"")
    name = _MARKS[mark] if mark else encoding(raw, path=path)
    try:
        text = raw[len(mark) :].decode(name)
        is_faithful = text.encode(name) == raw[len(mark) :]
    except (LookupError, ValueError) as fault:
        raise DataError(f"{path} is not in {name}, as it should be ({fault}). Convert it to UTF-8.") from None
    if not is_faithful:
        raise DataError(f"{path} cannot be written back in {name} without changes. Convert it to UTF-8.")
    return Source(
        path=path,
        content=text.encode("utf-8"),
        encoding=codecs.lookup(name).name,
        mark=mark,
        errors="xmlcharrefreplace" if is_markup else "strict",
        selection=selection,
        overwrites=overwrites,
    )
