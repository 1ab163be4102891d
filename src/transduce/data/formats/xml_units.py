"""XML as a stream of units: one translation unit at a time in memory, however long the file.

Expat reads it, and nothing that a file could ask for beyond its own text is granted: no entity is declared (the way to
make a small file fill the memory), none is fetched, and the network and other files are out of reach. A document type
that merely names a DTD, as TMX files do, is allowed and not looked up; an entity that it would have defined is refused.

Every element knows where its tags begin and end in the file, so that whoever fills a unit in can leave every other byte
as it was.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat

from transduce.errors import DataError

_PART = 1 << 16
_DEEPEST = 64
_LARGEST_UNIT = 16 << 20
_XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


@dataclass(eq=False)
class Element:
    """An element of a unit: its name without a prefix, attributes, children, and its place in the file in bytes."""

    name: str
    namespace: str
    attributes: Mapping[str, str]
    """By name; `xml:lang` keeps its prefix, other prefixed names are `namespace name`."""
    line: int
    start: int
    """Of the start tag."""
    inside: int = -1
    """After the start tag; equal to `end` for an empty-element tag."""
    inside_end: int = -1
    """Of the end tag."""
    end: int = -1
    children: list["Element | str"] = field(default_factory=list)

    def all(self, name: str) -> list["Element"]:
        """Return the children of this name and of the same namespace."""
        return [
            child
            for child in self.children
            if isinstance(child, Element) and child.name == name and child.namespace == self.namespace
        ]

    def first(self, name: str) -> "Element | None":
        """Return the first child of this name, if there is one."""
        return next(iter(self.all(name)), None)


@dataclass(frozen=True)
class Unit:
    """A unit and what stands around it: the latest element of each name that was opened before it, without children."""

    element: Element
    context: Mapping[str, Element]


def read_units(
    stream: BinaryIO | Iterable[bytes], *, path: Path, names: frozenset[str], encoding: str | None = None
) -> Iterator[Unit]:
    """Yield every element with one of these names, whole; DataError for what is no XML or asks for entities.

    The encoding is what the file says, unless another is given.
    """
    parser = _Parser(path, names, encoding)
    parts = stream if not hasattr(stream, "read") else iter(lambda: stream.read(_PART), b"")
    for part in parts:
        parser.feed(part)
        yield from parser.taken()
    parser.feed(b"", is_last=True)
    yield from parser.taken()


class _Parser:
    """Expat's events, gathered into units."""

    def __init__(self, path: Path, names: frozenset[str], encoding: str | None) -> None:
        self._path = path
        self._names = names
        self._open: list[Element] = []
        self._context: dict[str, Element] = {}
        self._size = 0
        self._unsettled: list[tuple[Element, str]] = []
        self._unsettled_unit: Unit | None = None
        self._units: list[Unit] = []
        self._expat = expat.ParserCreate(encoding, namespace_separator=" ")
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._text
        self._expat.DefaultHandler = lambda text: self._settle()
        self._expat.EntityDeclHandler = self._refuse_declaration
        self._expat.SkippedEntityHandler = self._refuse_entity

    def feed(self, part: bytes, *, is_last: bool = False) -> None:
        """Read on."""
        try:
            self._expat.Parse(part, is_last)
        except expat.ExpatError as fault:
            if (
                fault.code == expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]
                and self._expat.CurrentByteIndex <= 0
            ):
                raise DataError(
                    f"{self._path} is empty. Give a file with at least one unit, or leave it out."
                ) from None
            raise DataError(
                f"{self._path}:{fault.lineno}: here the file is no well-formed XML ({expat.ErrorString(fault.code)}). "
                "Mend it, or export it again from the tool that wrote it."
            ) from None
        except (LookupError, ValueError) as fault:
            raise DataError(
                f"{self._path} says that it is in an encoding that cannot be read ({fault}). Convert it to UTF-8."
            ) from None

    def taken(self) -> list[Unit]:
        """Return the units that are complete, once."""
        units, self._units = self._units, []
        return units

    def _settle(self) -> None:
        """Note where the last tag ended: at whatever comes next."""
        offset = self._expat.CurrentByteIndex
        for element, attribute in self._unsettled:
            setattr(element, attribute, offset)
        self._unsettled.clear()
        if self._unsettled_unit is not None:
            self._units.append(self._unsettled_unit)
            self._unsettled_unit = None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._settle()
        namespace, _, local = name.rpartition(" ")
        element = Element(
            local,
            namespace,
            {_attribute_name(key): value for key, value in attributes.items()},
            line=self._expat.CurrentLineNumber,
            start=self._expat.CurrentByteIndex,
        )
        self._unsettled.append((element, "inside"))
        if self._open:
            if len(self._open) >= _DEEPEST:
                raise self._fault(f"elements are nested more than {_DEEPEST} deep")
            self._open[-1].children.append(element)
            self._open.append(element)
            self._count(64 + sum(map(len, attributes.values())))
        elif local in self._names:
            self._size = 0
            self._open.append(element)
        else:
            self._context[local] = element

    def _end(self, name: str) -> None:
        self._settle()
        if not self._open:
            return
        element = self._open.pop()
        element.inside_end = self._expat.CurrentByteIndex
        self._unsettled.append((element, "end"))
        if not self._open:
            self._unsettled_unit = Unit(element, dict(self._context))

    def _text(self, text: str) -> None:
        self._settle()
        if self._open:
            children = self._open[-1].children
            if children and isinstance(children[-1], str):
                children[-1] += text
            else:
                children.append(text)
            self._count(len(text))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > _LARGEST_UNIT:
            raise self._fault(f"one unit is larger than {_LARGEST_UNIT >> 20} MiB")

    def _refuse_declaration(self, name: str, *rest: Any) -> None:  # noqa: ANN401 - expat's own arguments
        raise self._fault(
            f"the file declares the entity {name!r}. Entities are refused, since a few of them can stand for any "
            "amount of text"
        )

    def _refuse_entity(self, name: str, is_parameter: bool) -> None:
        raise self._fault(f"&{name}; is defined nowhere in this file, and no other file is fetched. Write it out")

    def _fault(self, what: str) -> DataError:
        return DataError(f"{self._path}:{self._expat.CurrentLineNumber}: {what}.")


def _attribute_name(key: str) -> str:
    namespace, _, local = key.rpartition(" ")
    return f"xml:{local}" if namespace == _XML_NAMESPACE else key
