"""XLIFF 1.2 and 2: what translators' tools exchange. Both know source and target, and how far a translation has come.

Units that are not translated, not to be translated or not approved are skipped and counted. A state that is not written
at all says nothing: most tools leave it out. The file's own direction is taken unless languages are chosen; chosen the
other way round, target and source change places.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.inline_tags import inline_text
from transduce.data.formats.languages import matches, no_such_pair
from transduce.data.formats.pair import Pair, Selection
from transduce.data.formats.xml_units import Element, Unit, read_units

UNITS = frozenset({"trans-unit", "unit"})
UNTRANSLATED, UNAPPROVED, KEPT = "untranslated", "not approved", "not to be translated"
_UNAPPROVED_STATES = frozenset({"new", "initial"})
_UNAPPROVED_PREFIX = "needs-"


class Piece(NamedTuple):
    """A source and its target in a unit; in XLIFF 2, and where a 1.2 unit is cut into segments, one of several."""

    holder: Element
    source: Element
    target: Element | None


def read_xliff(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of an XLIFF file of either version."""
    offered: Counter[str] = Counter()
    is_found = False
    with file.opened() as stream:
        for unit in read_units(stream, path=file.path, names=UNITS):
            source_language, target_language = languages_of(unit)
            offered[f"{source_language or '?'} to {target_language or '?'}"] += 1
            is_reversed = direction(source_language, target_language, selection)
            if is_reversed is None:
                continue
            for piece in pieces_of(unit.element):
                is_found = True
                source, target = inline_text(piece.source), "" if piece.target is None else inline_text(piece.target)
                if is_reversed:
                    source, target = target, source
                yield Pair(source, target, piece.source.line, skipped=fault_of(unit.element, piece))
    if not is_found:
        raise no_such_pair(file.path, selection, offered)


def languages_of(unit: Unit) -> tuple[str | None, str | None]:
    """Return the languages that the file, or in XLIFF 1.2 the part of it, says it is from and to."""
    if unit.element.name == "unit":
        names, holder = ("srcLang", "trgLang"), unit.context.get("xliff")
    else:
        names, holder = ("source-language", "target-language"), unit.context.get("file")
    attributes = {} if holder is None else holder.attributes
    return attributes.get(names[0]), attributes.get(names[1])


def direction(source: str | None, target: str | None, selection: Selection) -> bool | None:
    """Return whether the chosen pair is this one reversed; None if it is another pair."""
    wanted = selection.source_language, selection.target_language
    if all(_may_be(found, language) for found, language in zip((source, target), wanted, strict=True)):
        return False
    return True if all(matches(f, w) for f, w in zip((target, source), wanted, strict=True)) else None


def pieces_of(unit: Element) -> list[Piece]:
    """Return a unit's sources, each with its target if there is one."""
    if unit.name == "unit":
        pieces = [(segment, segment.first("source"), segment.first("target")) for segment in unit.all("segment")]
        return [Piece(holder, source, target) for holder, source, target in pieces if source is not None]
    source, target = unit.first("source"), unit.first("target")
    if source is None:
        return []
    segmented = unit.first("seg-source")
    if segmented is not None and target is not None:
        marks = marked_segments(target)
        pairs = [(segment, marks.get(mid)) for mid, segment in marked_segments(segmented).items()]
        if pairs and len(pairs) == len(marks) and all(partner is not None for _, partner in pairs):
            return [Piece(target, segment, partner) for segment, partner in pairs]
    return [Piece(target or unit, source, target)]


def marked_segments(element: Element) -> dict[str, Element]:
    """Return the segments that an XLIFF 1.2 source or target is cut into, by their number."""
    found: dict[str, Element] = {}
    for child in element.children:
        if isinstance(child, Element):
            if child.name == "mrk" and child.attributes.get("mtype") == "seg":
                found[child.attributes.get("mid", "")] = child
            else:
                found |= marked_segments(child)
    return found


def fault_of(unit: Element, piece: Piece) -> str:
    """Return why a piece is not to be learned from; nothing if it is."""
    if unit.attributes.get("translate") == "no":
        return KEPT
    if piece.target is None or not inline_text(piece.target).strip():
        return UNTRANSLATED
    state = piece.holder.attributes.get("state", "")
    is_open = state in _UNAPPROVED_STATES or state.startswith(_UNAPPROVED_PREFIX)
    return UNAPPROVED if is_open or unit.attributes.get("approved") == "no" else ""


def _may_be(found: str | None, wanted: str | None) -> bool:
    return found is None or wanted is None or matches(found, wanted)
