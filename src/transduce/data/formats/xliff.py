"""XLIFF 1.2 and 2, the exchange format of translators' tools: units with a source, a target and the target's state.

Units that are untranslated, not to be translated or not approved are skipped and counted. A missing state does not
count as unapproved, since most tools leave it out. The pairs have the file's own direction, or the opposite one if the
languages are chosen so.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.inline_tags import inline_text
from transduce.data.formats.languages import language_matches, no_such_pair
from transduce.data.formats.pair import Pair, Selection
from transduce.data.formats.xml_units import Element, TranslationUnit, read_units

UNITS = frozenset({"trans-unit", "unit"})
CONTEXT = frozenset({"xliff", "file"})
UNTRANSLATED, UNAPPROVED, NO_TRANSLATE = "untranslated", "not approved", "not to be translated"
_UNAPPROVED_STATES = frozenset({"new", "initial"})
_UNAPPROVED_PREFIX = "needs-"


class SegmentPair(NamedTuple):
    """A source and its target: one of several in an XLIFF 2 unit and in an XLIFF 1.2 unit cut into segments."""

    state_holder: Element
    """The element with the `state` attribute."""
    source: Element
    target: Element | None


def read_xliff(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of an XLIFF file of either version."""
    offered: Counter[str] = Counter()
    is_found = False
    with file.opened() as stream:
        for unit in read_units(stream, path=file.path, names=UNITS, context=CONTEXT):
            source_language, target_language = languages_of(unit)
            offered[f"{source_language or '?'} to {target_language or '?'}"] += 1
            is_reversed = is_reversed_pair(source_language, target_language, selection)
            if is_reversed is None:
                continue
            for pair in segment_pairs(unit.element):
                is_found = True
                source, target = inline_text(pair.source), "" if pair.target is None else inline_text(pair.target)
                if is_reversed:
                    source, target = target, source
                yield Pair(source, target, pair.source.line, skipped=_skip_reason(unit.element, pair))
    if not is_found:
        raise no_such_pair(file.path, selection, offered)


def languages_of(unit: TranslationUnit) -> tuple[str | None, str | None]:
    """Return a unit's source and target language: those of the document, or in XLIFF 1.2 of its `file` element."""
    if unit.element.name == "unit":
        names, holder = ("srcLang", "trgLang"), unit.context.get("xliff")
    else:
        names, holder = ("source-language", "target-language"), unit.context.get("file")
    attributes = {} if holder is None else holder.attributes
    return attributes.get(names[0]), attributes.get(names[1])


def is_reversed_pair(source: str | None, target: str | None, selection: Selection) -> bool | None:
    """Return whether the chosen pair is this one reversed; False if it is this one, None if it is another."""
    wanted_source, wanted_target = selection.source_language, selection.target_language
    if _may_match(source, wanted_source) and _may_match(target, wanted_target):
        return False
    return True if language_matches(target, wanted_source) and language_matches(source, wanted_target) else None


def segment_pairs(unit: Element) -> list[SegmentPair]:
    """Return a unit's sources, each with its target if there is one."""
    if unit.name == "unit":
        found = [(segment, segment.first("source"), segment.first("target")) for segment in unit.all("segment")]
        return [SegmentPair(segment, source, target) for segment, source, target in found if source is not None]
    source, target = unit.first("source"), unit.first("target")
    if source is None:
        return []
    segmented = unit.first("seg-source")
    if segmented is not None and target is not None:
        marks = marked_segments(target)
        pairs = [(segment, marks.get(mid)) for mid, segment in marked_segments(segmented).items()]
        if pairs and len(pairs) == len(marks) and all(partner is not None for _, partner in pairs):
            return [SegmentPair(target, segment, partner) for segment, partner in pairs]
    return [SegmentPair(target or unit, source, target)]


def marked_segments(element: Element) -> dict[str, Element]:
    """Return the segments that an XLIFF 1.2 source or target is cut into, by their `mid`."""
    found: dict[str, Element] = {}
    for child in element.children:
        if isinstance(child, Element):
            if child.name == "mrk" and child.attributes.get("mtype") == "seg":
                found[child.attributes.get("mid", "")] = child
            else:
                found |= marked_segments(child)
    return found


def _skip_reason(unit: Element, pair: SegmentPair) -> str:
    """Return why not to train on a pair; empty if it can be used."""
    if unit.attributes.get("translate") == "no":
        return NO_TRANSLATE
    if pair.target is None or not inline_text(pair.target).strip():
        return UNTRANSLATED
    state = pair.state_holder.attributes.get("state", "")
    is_open = state in _UNAPPROVED_STATES or state.startswith(_UNAPPROVED_PREFIX)
    return UNAPPROVED if is_open or unit.attributes.get("approved") == "no" else ""


def _may_match(found: str | None, wanted: str | None) -> bool:
    return found is None or wanted is None or language_matches(found, wanted)
