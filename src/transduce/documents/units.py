"""TMX and XLIFF: a target put into every unit that has none, its tags those of the source, marked for review.

XLIFF 1.2 has a state for that, needs-review-translation; in XLIFF 2 the segment stays initial, with a subState that
says why; TMX has no states, so the variant gets a property. Nothing of ours is ever approved.
"""

from collections.abc import Iterator, Sequence
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from transduce.data.formats.inline_tags import Tag, inline_parts, inline_text
from transduce.data.formats.tmx import UNITS as TMX_UNITS
from transduce.data.formats.tmx import choose_variant, variants_of
from transduce.data.formats.xliff import KEPT, direction, languages_of, marked_segments
from transduce.data.formats.xliff import UNITS as XLIFF_UNITS
from transduce.data.formats.xml_units import Element, Unit, read_units
from transduce.documents.marked_text import MarkedText, Markup, Part
from transduce.documents.source import EXISTING, Gap, Source, Splice
from transduce.errors import DataError

_CODE_PAIRS: dict[str, tuple[str, Literal["opens", "closes"]]] = {
    "bpt": ("bpt", "opens"),
    "ept": ("bpt", "closes"),
    "bx": ("bx", "opens"),
    "ex": ("bx", "closes"),
    "sc": ("sc", "opens"),
    "ec": ("sc", "closes"),
}
_LINKS = ("rid", "i", "startRef", "id")
_REVIEW_TMX = '<prop type="x-transduce-state">needs-review</prop>'
_REVIEW_1 = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
_REVIEW_2 = {"state": "initial", "subState": "transduce:needs-review"}


def tmx_gaps(source: Source) -> Iterator[Gap]:
    """Yield the units that have the source language and not the target language."""
    wanted = source.selection
    if wanted.source_language is None or wanted.target_language is None:
        raise DataError(
            f"{source.path}: it is not known what to translate from and to. Name both with --from and --to."
        )
    offered: set[str] = set()
    is_found = False
    for unit in read_units([source.content], path=source.path, names=TMX_UNITS, encoding="utf-8"):
        variants = variants_of(unit.element)
        offered.update(language for language, _ in variants)
        variant = choose_variant(variants, wanted.source_language)
        segment = None if variant is None else variant.first("seg")
        if variant is None or segment is None:
            continue
        is_found = True
        existing = choose_variant([own for own in variants if own[1] is not variant], wanted.target_language)
        yield _gap_of_variant(source, variant, segment, existing)
    if not is_found:
        raise DataError(
            f"{source.path} has no segment in {wanted.source_language}; it holds {', '.join(sorted(offered))}. "
            "Name the language to translate from with --from."
        )


def _gap_of_variant(source: Source, variant: Element, segment: Element, existing: Element | None) -> Gap:
    where = f"{source.path}:{segment.line}"
    target = None if existing is None else existing.first("seg")
    if target is not None and inline_text(target).strip() and not source.overwrites:
        return Gap(where, left=EXISTING)
    marked = _marked(source, segment)

    def fill(translations: Sequence[str]) -> list[Splice]:
        inner = _rendered(marked.with_translation(translations[0]))
        prefix = _prefix(source, variant)
        if existing is None:
            language = quoteattr(source.selection.target_language or "")
            attribute = "xml:lang" if "xml:lang" in variant.attributes else "lang"
            written = (
                f"<{prefix}tuv {attribute}={language}>{_REVIEW_TMX}<{prefix}seg>{inner}</{prefix}seg></{prefix}tuv>"
            )
            return [Splice(variant.end, variant.end, _space_before(source, variant) + written)]
        if target is None:
            place = existing.inside_end if existing.inside != existing.end else -1
            if place < 0:
                return _reopened(source, existing, {}, f"{_REVIEW_TMX}<{prefix}seg>{inner}</{prefix}seg>")
            return [Splice(place, place, f"{_REVIEW_TMX}<{prefix}seg>{inner}</{prefix}seg>")]
        return [Splice(target.start, target.start, _REVIEW_TMX), *_reopened(source, target, {}, inner)]

    return Gap(where, (marked.text,), fill) if marked.text.strip() else Gap(where, left="")


def xliff_gaps(source: Source) -> Iterator[Gap]:
    """Yield the units, or in XLIFF 2 the segments, without a target."""
    pairs: set[str] = set()
    is_found = False
    for unit in read_units([source.content], path=source.path, names=XLIFF_UNITS, encoding="utf-8"):
        languages = languages_of(unit)
        pairs.add(f"{languages[0] or '?'} to {languages[1] or '?'}")
        if direction(*languages, source.selection) is not False:
            continue
        is_found = True
        once = _language_named(source, unit)
        holders = unit.element.all("segment") if unit.element.name == "unit" else [unit.element]
        for holder in holders:
            yield from _gaps_of_holder(source, unit.element, holder, once)
    if pairs and not is_found:
        wanted = source.selection
        raise DataError(
            f"{source.path} goes from {', '.join(sorted(pairs))}, not from {wanted.source_language} to "
            f"{wanted.target_language}. Take another model."
        )


def _gaps_of_holder(source: Source, unit: Element, holder: Element, once: Splice | None) -> Iterator[Gap]:
    text, target = holder.first("source"), holder.first("target")
    if text is None:
        return
    where = f"{source.path}:{text.line}"
    if unit.attributes.get("translate") == "no":
        yield Gap(where, left=KEPT)
        return
    if target is not None and inline_text(target).strip() and not source.overwrites:
        yield Gap(where, left=EXISTING)
        return
    segmented = holder.first("seg-source") if holder.name == "trans-unit" else None
    cuts = list(marked_segments(segmented).values()) if segmented is not None else []
    whole = segmented if segmented is not None and cuts else text
    marked = [_marked(source, part) for part in cuts or [text]]
    filled = [own for own in marked if own.text.strip()]

    def fill(translations: Sequence[str]) -> list[Splice]:
        given = iter(translations)
        inners = [
            _rendered(own.with_translation(next(given)) if own.text.strip() else [*own.before, *own.inside, *own.after])
            for own in marked
        ]
        inner = _replaced(source, whole, cuts, inners) if cuts else inners[0]
        return _with_target(source, holder, target, inner, after=segmented or text)

    if filled:
        yield Gap(where, tuple(own.text for own in filled), fill, once=once)


def _with_target(
    source: Source, holder: Element, target: Element | None, inner: str, *, after: Element
) -> list[Splice]:
    prefix = _prefix(source, after)
    splices: list[Splice] = []
    if holder.name == "trans-unit":
        review = _REVIEW_1
        if holder.attributes.get("approved") == "yes":
            splices.append(_retagged(source, holder, {"approved": "no"}))
    else:
        review = {}
        splices.append(_retagged(source, holder, _REVIEW_2))
    if target is not None:
        return [*splices, *_reopened(source, target, review, inner)]
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in review.items())
    written = f"{_space_before(source, after)}<{prefix}target{attributes}>{inner}</{prefix}target>"
    return [*splices, Splice(after.end, after.end, written)]


def _marked(source: Source, element: Element) -> MarkedText:
    parts: list[Part] = []
    for part in inline_parts(element, keeps_marks=True):
        parts.append(part if isinstance(part, str) else _markup(source, part))
    return MarkedText.of(parts)


def _markup(source: Source, tag: Tag) -> Markup:
    element = tag.element
    if tag.kind == "opens":
        return Markup(tag.text, source.text(element.start, element.inside), "opens", f"@{element.start}")
    if tag.kind == "closes":
        return Markup(tag.text, source.text(element.inside_end, element.end), "closes", f"@{element.start}")
    raw = source.text(element.start, element.end)
    link = next((element.attributes[name] for name in _LINKS if name in element.attributes), None)
    if element.name in _CODE_PAIRS and link is not None:
        name, kind = _CODE_PAIRS[element.name]
        return Markup(tag.text, raw, kind, f"{name} {link}", must_nest=False)
    return Markup(tag.text, raw, "alone")


def _rendered(parts: Sequence[Part]) -> str:
    return "".join(escape(part) if isinstance(part, str) else part.raw for part in parts)


def _replaced(source: Source, whole: Element, cuts: Sequence[Element], inners: Sequence[str]) -> str:
    """Return the content of an element with new content in some elements inside it."""
    written, done = [], whole.inside
    for cut, inner in zip(cuts, inners, strict=True):
        written += [source.text(done, cut.inside), inner]
        done = cut.inside_end
    return "".join([*written, source.text(done, whole.inside_end)])


def _prefix(source: Source, element: Element) -> str:
    """Return the namespace's prefix, with its colon, that an element is written with."""
    name = source.text(element.start + 1, element.inside).replace("/", " ").replace(">", " ").split()[0]
    prefix, colon, _ = name.rpartition(":")
    return prefix + colon


def _space_before(source: Source, element: Element) -> str:
    """Return the white space in front of an element, to lay out its new sibling alike."""
    before = source.content[max(0, element.start - 200) : element.start].decode("utf-8", "replace")
    space = before[len(before.rstrip()) :]
    return space if "\n" in space else ""


def _reopened(source: Source, element: Element, attributes: dict[str, str], inner: str) -> list[Splice]:
    """Return an element with new content and attributes; an empty-element tag is opened."""
    retagged = _retagged(source, element, attributes)
    if element.inside != element.end:
        return [retagged, Splice(element.inside, element.inside_end, inner)]
    name = f"{_prefix(source, element)}{element.name}"
    opening = retagged.text[:-2].rstrip() + ">"
    return [Splice(element.start, element.end, f"{opening}{inner}</{name}>")]


def _retagged(source: Source, element: Element, attributes: dict[str, str]) -> Splice:
    """Return an element's start tag with some attributes set, the others as they were written."""
    tag = source.text(element.start, element.inside)
    for name, value in attributes.items():
        tag = _with_attribute(tag, name, value)
    return Splice(element.start, element.inside, tag)


def _with_attribute(tag: str, name: str, value: str) -> str:
    found = _attribute(tag, name)
    if found is not None:
        return tag[: found[0]] + quoteattr(value) + tag[found[1] :]
    end = len(tag) - (2 if tag.endswith("/>") else 1)
    end = len(tag[:end].rstrip())
    return f"{tag[:end]} {name}={quoteattr(value)}{tag[end:]}"


def _attribute(tag: str, name: str) -> tuple[int, int] | None:
    """Return where the quoted value of an attribute stands in a well-formed start tag."""
    position = 0
    while (equals := tag.find("=", position)) >= 0:
        opening = next(place for place in range(equals + 1, len(tag)) if tag[place] in "\"'")
        closing = tag.index(tag[opening], opening + 1)
        if tag[position:equals].split()[-1] == name:
            return opening, closing + 1
        position = closing + 1
    return None


def _language_named(source: Source, unit: Unit) -> Splice | None:
    """Return the target language for a file that does not say it: with targets in it, it must."""
    holder, name = (
        (unit.context.get("xliff"), "trgLang")
        if unit.element.name == "unit"
        else (unit.context.get("file"), "target-language")
    )
    language = source.selection.target_language
    if holder is None or language is None or name in holder.attributes:
        return None
    return _retagged(source, holder, {name: language})
