"""Word documents (DOCX): translate the paragraphs of the text, headers, footers and notes in place.

A paragraph is a sequence of runs, each with its own formatting. Neighbouring runs with equal formatting are one text;
words formatted unlike most of the paragraph are put between a pair of tags, and so are links; pictures, tabs, breaks
and fields are one tag each. Bookmarks and marks of comments move to the edges of their paragraph. Every other part of
the package is copied.
"""

import io
import re
import zipfile
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from transduce.data.formats.pair import Selection
from transduce.data.formats.xml_units import Element, read_units
from transduce.documents.document import Document, Gap, Splice
from transduce.documents.marked_gap import marked_gap
from transduce.documents.marked_text import Markup, Part, has_words, joined_texts
from transduce.errors import DataError

TRACKED = "it has tracked changes: accept or reject them first"
FIELD = "a field, such as a table of contents, begins or ends in another paragraph"
TEXT_BOX = "it is a text box in a paragraph with text"
_TEXT_MEMBERS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes)\.xml")
_MAIN = "word/document.xml"
_MOST_MEMBERS, _MOST_TEXT_BYTES, _MOST_BYTES = 10_000, 64 << 20, 512 << 20
_TRACKED = frozenset(["ins", "del", "moveFrom", "moveTo"])
_LINKS = frozenset(["hyperlink", "smartTag"])
_STARTS = frozenset(["bookmarkStart", "commentRangeStart", "permStart"])
_ENDS = frozenset(["bookmarkEnd", "commentRangeEnd", "permEnd"])
_DROPPED = frozenset(["pPr", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen"])
_CHARACTERS = {"noBreakHyphen": "\u2011"}
# The language and the spelling mark of a run describe the source text, so they are removed.
_SOURCE_ONLY = re.compile(r"<(?:\w+:)?(?:lang|noProof)(?:\s[^<>]*)?/>")


@dataclass(frozen=True)
class WordDocument(Document):
    """A Word package; its content is the content of all members with text, one after the other."""

    package: bytes = b""
    members: tuple[tuple[str, int, int], ...] = ()
    """The name, start and end in the content of every member with text."""

    def with_splices(self, splices: Sequence[Splice]) -> bytes:
        """Return the package with these splices applied; other members are copied."""
        starts = [start for _, start, _ in self.members]
        own: list[list[Splice]] = [[] for _ in self.members]
        for start, end, text in splices:
            number = bisect_right(starts, start) - 1
            own[number].append(Splice(start - starts[number], end - starts[number], text))
        texts = {
            name: self.part(start, end).with_splices(spliced)
            for (name, start, end), spliced in zip(self.members, own, strict=True)
        }
        written = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.package)) as old, zipfile.ZipFile(written, "w") as new:
            new.comment = old.comment
            for info in old.infolist():
                content = texts.get(info.filename)
                new.writestr(info, old.read(info) if content is None else content)
        return written.getvalue()

    def part(self, start: int, end: int) -> Document:
        """Return a part of the content as a document of its own."""
        return Document(self.path, self.content[start:end], "utf-8", b"", "strict", self.selection, self.overwrites)


def unpack_word(raw: bytes, *, path: Path, selection: Selection, overwrites: bool) -> WordDocument:
    """Return the Word document in `raw`; DataError if it is none, or is too large unpacked."""
    content: list[bytes] = []
    members: list[tuple[str, int, int]] = []
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as package:
            infos = package.infolist()
            texts = sorted((info for info in infos if _TEXT_MEMBERS.fullmatch(info.filename)), key=_main_first)
            _require_sound(infos, texts, path=path)
            for info in texts:
                start = members[-1][2] if members else 0
                content.append(package.read(info))
                content[-1].decode("utf-8")
                members.append((info.filename, start, start + len(content[-1])))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as fault:
        raise DataError(f"{path} is not a whole Word document ({fault}). Save it again as .docx.") from None
    return WordDocument(
        path, b"".join(content), "utf-8", b"", "strict", selection, overwrites, package=raw, members=tuple(members)
    )


def _require_sound(infos: Sequence[zipfile.ZipInfo], texts: Sequence[zipfile.ZipInfo], *, path: Path) -> None:
    names = [info.filename for info in infos]
    if _MAIN not in names:
        raise DataError(f"{path} is not a Word document: it has no {_MAIN}. Save it again as .docx.")
    if len(set(names)) < len(names) or any(info.flag_bits & 1 for info in infos):
        raise DataError(f"{path} has encrypted or repeated members. Save it again as .docx without a password.")
    sizes = sum(info.file_size for info in texts), sum(info.file_size for info in infos)
    if len(infos) > _MOST_MEMBERS or sizes[0] > _MOST_TEXT_BYTES or sizes[1] > _MOST_BYTES:
        raise DataError(
            f"{path} has more than {_MOST_TEXT_BYTES >> 20} MiB of text, {_MOST_BYTES >> 20} MiB in all or "
            f"{_MOST_MEMBERS:,} members, unpacked. Split it."
        )


def _main_first(info: zipfile.ZipInfo) -> tuple[bool, str]:
    return info.filename != _MAIN, info.filename


def word_gaps(document: Document) -> Iterator[Gap]:
    """Yield every paragraph that has words."""
    assert isinstance(document, WordDocument)
    for name, start, end in document.members:
        part = document.part(start, end)
        paragraphs = read_units([part.content], path=document.path / name, names=frozenset({"p"}), encoding="utf-8")
        for number, unit in enumerate(paragraphs, start=1):
            if unit.element.namespace.endswith(("/wordprocessingml/2006/main", "/wordprocessingml/main")):
                location = f"{document.path}: {name}, paragraph {number}"
                yield from _Paragraph(part, unit.element, location, offset=start).gaps()


@dataclass
class _Word:
    """A text with its formatting, a tag alone, or a link around words."""

    content: "str | Markup | list[_Word]"
    formatting: str = ""
    link: tuple[str, str] = ("", "")
    """The tags around a list."""


class _Paragraph:
    """One paragraph: its parts, and how they are written as runs again."""

    def __init__(self, document: Document, element: Element, location: str, *, offset: int) -> None:
        self._document, self._element, self._location, self._offset = document, element, location, offset
        name = document.text(element.start + 1, element.inside)
        self._prefix = name[: name.index(":") + 1] if re.match(r"\w+:p\b", name) else ""
        self._before: list[Part] = []
        self._after: list[Part] = []
        self._formats: dict[str, str] = {}
        self._base = ""
        self._number = 0
        self._field: list[str] = []
        self._depth = 0
        self._skip_reason = ""

    def gaps(self) -> Iterator[Gap]:
        """Yield the paragraph's gap; if it has no words, those of the text boxes in it."""
        children = [child for child in self._element.children if isinstance(child, Element) and child.name != "pPr"]
        words = self._words(children)
        self._base = _most_common_format(words)
        parts = self._parts(words, self._base)
        boxes = list(_inner_paragraphs(self._element, self._element.namespace))
        if not has_words(parts):
            for box in boxes:
                yield from _Paragraph(self._document, box, self._location, offset=self._offset).gaps()
            return
        if boxes:
            yield Gap(self._location, skip_reason=TEXT_BOX)
        if self._depth or self._field:
            self._skip_reason = FIELD
        if self._skip_reason:
            yield Gap(self._location, skip_reason=self._skip_reason)
            return
        place = self._offset + children[0].start, self._offset + self._element.inside_end
        gap = marked_gap(
            self._location, [*self._before, *parts, *self._after], lambda own: [Splice(*place, self._runs(own))]
        )
        if gap is not None:
            yield gap

    def _words(self, children: Sequence[Element]) -> list[_Word]:
        """Return the content of a paragraph or a link."""
        found: list[_Word] = []
        for child in children:
            if child.name in _TRACKED:
                self._skip_reason = TRACKED
            elif child.name in _STARTS:
                self._before.append(self._alone(self._raw(child)))
            elif child.name in _ENDS:
                self._after.append(self._alone(self._raw(child)))
            elif child.name == "r":
                found += self._run(child)
            elif child.name in _LINKS and not child.is_empty_tag and not self._depth:
                inner = self._words([own for own in child.children if isinstance(own, Element)])
                tags = (
                    self._document.text(child.start, child.inside),
                    self._document.text(child.inside_end, child.end),
                )
                found.append(_Word(inner, _most_common_format(inner), tags))
            elif child.name not in _DROPPED:
                found += self._code(self._raw(child))
        return found

    def _run(self, run: Element) -> Iterator[_Word]:
        properties = run.first("rPr")
        formatting = "" if properties is None else _SOURCE_ONLY.sub("", self._raw(properties))
        if formatting.count("<") == 2:  # nothing is left between the two tags
            formatting = ""
        for child in run.children:
            if isinstance(child, str) or child.name in _DROPPED:
                continue
            raw = self._raw(child)
            kind = next((value for key, value in child.attributes.items() if key.endswith("fldCharType")), "")
            self._depth += kind == "begin"
            if self._depth:  # a field: its code and its result are one tag
                self._field.append(self._wrapped(formatting, raw))
                self._depth -= kind == "end"
                if not self._depth:
                    field, self._field = "".join(self._field), []
                    yield _Word(self._alone(field))
            elif kind:
                self._skip_reason = FIELD
            elif child.name == "t":
                yield _Word("".join(own for own in child.children if isinstance(own, str)), formatting)
            elif child.name in _CHARACTERS:
                yield _Word(_CHARACTERS[child.name], formatting)
            else:
                yield _Word(self._alone(self._wrapped(formatting, raw)))

    def _code(self, raw: str) -> list[_Word]:
        """Return an element that is not a run as one tag; inside a field it belongs to the field."""
        if self._depth:
            self._field.append(raw)
            return []
        return [_Word(self._alone(raw))]

    def _parts(self, words: Sequence[_Word], base: str) -> list[Part]:
        """Return words as parts; a sequence of words whose formatting is not `base` is between a pair of tags."""
        parts: list[Part] = []
        opened: tuple[str, str] | None = None  # the formatting and the group of the pair that is open
        for word in words:
            wanted = word.formatting if isinstance(word.content, str) else None
            if opened is not None and wanted != opened[0]:
                parts.append(Markup("</g>", "", "closes", opened[1]))
                opened = None
            if wanted is not None and wanted != base and opened is None:
                opened = (wanted, self._group(wanted))
                parts.append(Markup(f'<g id="{opened[1]}">', "", "opens", opened[1]))
            if isinstance(word.content, list):
                group = self._group(word.formatting)
                inner = self._parts(word.content, word.formatting)
                parts.append(Markup(f'<a id="{group}">', word.link[0], "opens", group))
                parts += [*inner, Markup("</a>", word.link[1], "closes", group)]
            else:
                parts.append(word.content)
        if opened is not None:
            parts.append(Markup("</g>", "", "closes", opened[1]))
        return joined_texts(parts)

    def _runs(self, parts: Sequence[Part]) -> str:
        """Return parts as XML: every text in a run with the formatting of the tags around it."""
        written: list[str] = []
        formats = [self._base]
        for part in parts:
            if isinstance(part, str):
                text = escape(" ".join(part.splitlines()) or part)
                name = f"{self._prefix}t"
                written.append(self._wrapped(formats[-1], f'<{name} xml:space="preserve">{text}</{name}>'))
                continue
            if part.kind == "opens":
                formats.append(self._formats[part.group])
            elif part.kind == "closes":
                formats.pop()
            written.append(part.raw)
        return "".join(written)

    def _wrapped(self, formatting: str, inner: str) -> str:
        return f"<{self._prefix}r>{formatting}{inner}</{self._prefix}r>"

    def _raw(self, element: Element) -> str:
        return self._document.text(element.start, element.end)

    def _alone(self, raw: str) -> Markup:
        self._number += 1
        return Markup(f'<x id="{self._number}"/>', raw, "alone")

    def _group(self, formatting: str) -> str:
        self._number += 1
        self._formats[str(self._number)] = formatting
        return str(self._number)


def _most_common_format(words: Sequence[_Word]) -> str:
    sizes: Counter[str] = Counter()
    for word in words:
        if isinstance(word.content, str):
            sizes[word.formatting] += len(word.content)
    return max(sizes, key=lambda own: sizes[own], default="")


def _inner_paragraphs(element: Element, namespace: str) -> Iterator[Element]:
    """Yield the outermost paragraphs inside an element: those of its text boxes."""
    for child in element.children:
        if isinstance(child, Element) and child.name == "p" and child.namespace == namespace:
            yield child
        elif isinstance(child, Element):
            yield from _inner_paragraphs(child, namespace)
