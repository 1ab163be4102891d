"""Reading XML one translation unit at a time, so that a file may be larger than memory.

Expat parses it. A file that declares an entity is refused, since a few entities can expand to any amount of text. No
other file and no network address is read: a document type may name a DTD, as in TMX, but the DTD is not fetched, and an
entity that it would define is refused.

Every element has the byte offsets of its tags, so that a unit can be changed without touching any other byte.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat

from transduce.errors import DataError

_CHUNK_BYTES = 1 << 16
_MOST_LEVELS = 64
_MOST_UNIT_BYTES = 16 << 20
_XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


@dataclass(eq=False)
class Element:
    """An element of a unit: its name without prefix, its attributes and children, and the byte offsets of its tags."""

    name: str
    namespace: str
    attributes: Mapping[str, str]
    """By name; `xml:lang` keeps its prefix, other prefixed names are `namespace name`."""
    line: int
    start: int
    """Where the start tag begins."""
    inside: int = -1
    """Where the start tag ends."""
    inside_end: int = -1
    """Where the end tag begins."""
    end: int = -1
    """Where the end tag ends."""
    children: list["Element | str"] = field(default_factory=list)

    @property
    def is_empty_tag(self) -> bool:
        """Whether the element is written as one empty-element tag, `<x/>`."""
        return self.inside == self.end

    def all(self, name: str) -> list["Element"]:
        """Return the child elements of this name in the element's own namespace."""
        return [
            child
            for child in self.children
            if isinstance(child, Element) and child.name == name and child.namespace == self.namespace
        ]

    def first(self, name: str) -> "Element | None":
        """Return the first child element of this name in the element's own namespace, if there is one."""
        return next(iter(self.all(name)), None)


@dataclass(frozen=True)
class TranslationUnit:
    """A translation unit and the elements around it."""

    element: Element
    context: Mapping[str, Element]
    """By name, the last element that was opened before the unit and outside of any unit; it has no children.

    Each unit has its own copy, so it holds only the names that a format asks for.
    """


def read_units(
    stream: BinaryIO | Iterable[bytes],
    *,
    path: Path,
    names: frozenset[str],
    context: frozenset[str] = frozenset(),
    encoding: str | None = None,
) -> Iterator[TranslationUnit]:
    """Yield every element with one of these names; DataError for invalid XML, entities, and units beyond the limits.

    A unit's context has the elements that `context` names. The encoding is the one that the file declares, unless
    `encoding` is given.
    """
    parser = _UnitParser(path, names, context, encoding)
    chunks = stream if not hasattr(stream, "read") else iter(lambda: stream.read(_CHUNK_BYTES), b"")
    for chunk in chunks:
        yield from parser.feed(chunk)
    yield from parser.feed(b"", is_last=True)


class _UnitParser:
    """Collects Expat's events into units."""

    def __init__(self, path: Path, names: frozenset[str], context: frozenset[str], encoding: str | None) -> None:
        self._path = path
        self._names = names
        self._context_names = context
        self._open: list[Element] = []
        self._context: dict[str, Element] = {}
        self._size = 0
        self._last_tags: list[tuple[Element, str]] = []  # each with the attribute that the next event's offset sets
        self._last_unit: TranslationUnit | None = None
        self._units: list[TranslationUnit] = []
        self._expat = expat.ParserCreate(encoding, namespace_separator=" ")
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._text
        self._expat.DefaultHandler = lambda text: self._end_last_tag()
        self._expat.EntityDeclHandler = self._refuse_declaration
        self._expat.SkippedEntityHandler = self._refuse_entity

    def feed(self, chunk: bytes, *, is_last: bool = False) -> list[TranslationUnit]:
        """Parse the next chunk; return the units that are now complete."""
        try:
            self._expat.Parse(chunk, is_last)
        except expat.ExpatError as fault:
            if (
                fault.code == expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]
                and self._expat.CurrentByteIndex <= 0
            ):
                raise DataError(
                    f"{self._path} is empty. Give a file with at least one unit, or leave it out."
                ) from None
            place = f"{self._path}:{fault.lineno}:{fault.offset + 1}"
            raise DataError(
                f"{place}: the file is not well-formed XML ({expat.ErrorString(fault.code)}). "
                "Fix it, or export it again from the tool that wrote it."
            ) from None
        except (LookupError, ValueError) as fault:
            raise DataError(
                f"{self._path} declares an encoding that is not supported ({fault}). Convert it to UTF-8."
            ) from None
        units, self._units = self._units, []
        return units

    def _end_last_tag(self) -> None:
        """Record the current offset as the end of the last tag: Expat tells only where an event begins."""
        offset = self._expat.CurrentByteIndex
        for element, attribute in self._last_tags:
            setattr(element, attribute, offset)
        self._last_tags.clear()
        if self._last_unit is not None:
            self._units.append(self._last_unit)
            self._last_unit = None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._end_last_tag()
        namespace, _, local = name.rpartition(" ")
        element = Element(
            local,
            namespace,
            {_attribute_name(key): value for key, value in attributes.items()},
            line=self._expat.CurrentLineNumber,
            start=self._expat.CurrentByteIndex,
        )
        self._last_tags.append((element, "inside"))
        if self._open:
            if len(self._open) >= _MOST_LEVELS:
                raise self._fault(f"elements are nested more than {_MOST_LEVELS} deep")
            self._open[-1].children.append(element)
            self._open.append(element)
            self._count(64 + sum(map(len, attributes.values())))
        elif local in self._names:
            self._size = 0
            self._open.append(element)
        elif local in self._context_names:
            self._context[local] = element

    def _end(self, name: str) -> None:
        self._end_last_tag()
        if not self._open:
            return
        element = self._open.pop()
        element.inside_end = self._expat.CurrentByteIndex
        element.children = _with_joined_texts(element.children)
        self._last_tags.append((element, "end"))
        if not self._open:
            self._last_unit = TranslationUnit(element, dict(self._context))

    def _text(self, text: str) -> None:
        self._end_last_tag()
        if self._open:
            self._open[-1].children.append(text)
            self._count(len(text))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > _MOST_UNIT_BYTES:
            raise self._fault(f"one unit is larger than {_MOST_UNIT_BYTES >> 20} MiB")

    def _refuse_declaration(self, name: str, *rest: Any) -> None:  # noqa: ANN401 - expat's own arguments
        raise self._fault(
            f"the file declares the entity {name!r}. Entities are refused, since a few of them can expand to any "
            "amount of text. Write the text itself"
        )

    def _refuse_entity(self, name: str, is_parameter: bool) -> None:
        raise self._fault(
            f"&{name}; is not defined in this file, and no other file is fetched. Write the character itself"
        )

    def _fault(self, what: str) -> DataError:
        place = f"{self._expat.CurrentLineNumber}:{self._expat.CurrentColumnNumber + 1}"
        return DataError(f"{self._path}:{place}: {what}.")


def _with_joined_texts(children: list[Element | str]) -> list[Element | str]:
    """Return the children with neighbouring texts joined: Expat passes every line of a text on its own."""
    joined: list[Element | str] = []
    for is_text, run in groupby(children, key=lambda child: isinstance(child, str)):
        members = list(run)
        joined += ["".join(map(str, members))] if is_text else members
    return joined


def _attribute_name(key: str) -> str:
    namespace, _, local = key.rpartition(" ")
    return f"xml:{local}" if namespace == _XML_NAMESPACE else key
