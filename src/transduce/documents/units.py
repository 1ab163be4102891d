"""TMX and XLIFF: add a target with the source's tags to every unit that lacks one, and mark it for review.

XLIFF 1.2 marks it with the state needs-review-translation. In XLIFF 2 the segment's state is initial, and a subState
gives the reason. TMX has no states, so the new variant gets a property. A filled-in unit is never marked approved.
"""

from collections.abc import Iterator, Sequence
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from transduce.data.formats.inline_tags import InlineTag, inline_parts, inline_text
from transduce.data.formats.tmx import UNITS as TMX_UNITS
from transduce.data.formats.tmx import choose_variant, variants_of
from transduce.data.formats.xliff import CONTEXT, NO_TRANSLATE, is_reversed_pair, languages_of, marked_segments
from transduce.data.formats.xliff import UNITS as XLIFF_UNITS
from transduce.data.formats.xml_units import Element, TranslationUnit, read_units
from transduce.documents.document import TRANSLATED, Document, Gap, Splice
from transduce.documents.marked_text import MarkedText, Markup, Part
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
_TMX_REVIEW = '<prop type="x-transduce-state">needs-review</prop>'
_XLIFF_1_REVIEW = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
_XLIFF_2_REVIEW = {"state": "initial", "subState": "transduce:needs-review"}


def tmx_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every unit that has a variant in the source language."""
    wanted = document.selection
    if wanted.source_language is None or wanted.target_language is None:
        raise DataError(f"{document.path}: the languages are not known. Name both with --from and --to.")
    languages: set[str] = set()
    is_found = False
    for unit in read_units([document.content], path=document.path, names=TMX_UNITS, encoding="utf-8"):
        variants = variants_of(unit.element)
        languages.update(language for language, _ in variants)
        variant = choose_variant(variants, wanted.source_language)
        segment = None if variant is None else variant.first("seg")
        if variant is None or segment is None:
            continue
        is_found = True
        existing = choose_variant([other for other in variants if other[1] is not variant], wanted.target_language)
        yield from _gap_of_variant(document, variant, segment, existing)
    if not is_found:
        raise DataError(
            f"{document.path} has no segment in {wanted.source_language}; it has {', '.join(sorted(languages))}. "
            "Name the language to translate from with --from."
        )


def _gap_of_variant(document: Document, variant: Element, segment: Element, existing: Element | None) -> Iterator[Gap]:
    """Yield a unit's gap: `segment` of `variant` is the source, `existing` the variant in the target language."""
    location = f"{document.path}:{segment.line}"
    target = None if existing is None else existing.first("seg")
    if target is not None and inline_text(target).strip() and not document.overwrites:
        yield Gap(location, skip_reason=TRANSLATED)
        return
    marked = _marked_text(document, segment)

    def fill(translations: Sequence[str]) -> list[Splice]:
        inner = _as_xml(marked.with_translation(translations[0]))
        if target is not None:
            return [Splice(target.start, target.start, _TMX_REVIEW), *_with_content(document, target, {}, inner)]
        prefix = _prefix(document, variant)
        written = f"{_TMX_REVIEW}<{prefix}seg>{inner}</{prefix}seg>"
        if existing is None:
            language = quoteattr(document.selection.target_language or "")
            attribute = "xml:lang" if "xml:lang" in variant.attributes else "lang"
            written = f"<{prefix}tuv {attribute}={language}>{written}</{prefix}tuv>"
            return [Splice(variant.end, variant.end, _space_before(document, variant) + written)]
        if existing.is_empty_tag:
            return _with_content(document, existing, {}, written)
        return [Splice(existing.inside_end, existing.inside_end, written)]

    if marked.text.strip():
        yield Gap(location, (marked.text,), fill)


def xliff_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every unit, in XLIFF 2 for every segment, of the chosen languages."""
    pairs: set[str] = set()
    is_found = False
    units = read_units([document.content], path=document.path, names=XLIFF_UNITS, context=CONTEXT, encoding="utf-8")
    holder: Element | None = None
    language_splice: Splice | None = None
    for unit in units:
        languages = languages_of(unit)
        pairs.add(f"{languages[0] or '?'} to {languages[1] or '?'}")
        if is_reversed_pair(*languages, document.selection) is not False:
            continue
        is_found = True
        if holder is None or holder is not _language_holder(unit):
            holder = _language_holder(unit)
            language_splice = _target_language_splice(document, unit)
        segments = unit.element.all("segment") if unit.element.name == "unit" else [unit.element]
        for segment in segments:
            yield from _gap_of_holder(document, unit.element, segment, language_splice)
    if pairs and not is_found:
        wanted = document.selection
        raise DataError(
            f"{document.path} goes from {', '.join(sorted(pairs))}, not from {wanted.source_language} to "
            f"{wanted.target_language}. Choose another model."
        )


def _gap_of_holder(document: Document, unit: Element, holder: Element, language_splice: Splice | None) -> Iterator[Gap]:
    """Yield the gap of one `holder` of a source and a target: a trans-unit of XLIFF 1.2 or a segment of XLIFF 2."""
    source, target = holder.first("source"), holder.first("target")
    if source is None:
        return
    location = f"{document.path}:{source.line}"
    if unit.attributes.get("translate") == "no":
        yield Gap(location, skip_reason=NO_TRANSLATE)
        return
    if target is not None and inline_text(target).strip() and not document.overwrites:
        yield Gap(location, skip_reason=TRANSLATED)
        return
    segmented = holder.first("seg-source") if holder.name == "trans-unit" else None
    cuts = list(marked_segments(segmented).values()) if segmented is not None else []
    marked = [_marked_text(document, element) for element in cuts or [source]]
    texts = tuple(one.text for one in marked if one.text.strip())

    def fill(translations: Sequence[str]) -> list[Splice]:
        rest = iter(translations)
        inners = [
            _as_xml(one.with_translation(next(rest)) if one.text.strip() else [*one.before, *one.inside, *one.after])
            for one in marked
        ]
        inner = _with_contents(document, segmented, cuts, inners) if segmented and cuts else inners[0]
        return _with_target(document, holder, target, inner, after=segmented or source)

    if texts:
        yield Gap(location, texts, fill, shared_splice=language_splice)


def _with_target(
    document: Document, holder: Element, target: Element | None, inner: str, *, after: Element
) -> list[Splice]:
    """Return the splices that put `inner` into the target, or into a new one after the element `after`."""
    splices: list[Splice] = []
    if holder.name == "trans-unit":
        attributes = _XLIFF_1_REVIEW
        if holder.attributes.get("approved") == "yes":
            splices.append(_with_attributes(document, holder, {"approved": "no"}))
    else:
        attributes = {}
        splices.append(_with_attributes(document, holder, _XLIFF_2_REVIEW))
    if target is not None:
        return [*splices, *_with_content(document, target, attributes, inner)]
    name = f"{_prefix(document, after)}target"
    tag = name + "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return [*splices, Splice(after.end, after.end, f"{_space_before(document, after)}<{tag}>{inner}</{name}>")]


def _target_language_splice(document: Document, unit: TranslationUnit) -> Splice | None:
    """Return the splice that names the target language, which a file with targets must name; None if it does."""
    holder = _language_holder(unit)
    name = "trgLang" if unit.element.name == "unit" else "target-language"
    language = document.selection.target_language
    if holder is None or language is None or name in holder.attributes:
        return None
    return _with_attributes(document, holder, {name: language})


def _language_holder(unit: TranslationUnit) -> Element | None:
    """Return the element that names the languages of a unit."""
    return unit.context.get("xliff" if unit.element.name == "unit" else "file")


def _marked_text(document: Document, element: Element) -> MarkedText:
    parts = inline_parts(element, keeps_marks=True)
    return MarkedText.of([part if isinstance(part, str) else _markup(document, part) for part in parts])


def _markup(document: Document, tag: InlineTag) -> Markup:
    element = tag.element
    if tag.kind == "opens":
        return Markup(tag.text, document.text(element.start, element.inside), "opens", f"@{element.start}")
    if tag.kind == "closes":
        return Markup(tag.text, document.text(element.inside_end, element.end), "closes", f"@{element.start}")
    raw = document.text(element.start, element.end)
    link = next((element.attributes[name] for name in _LINKS if name in element.attributes), None)
    if element.name in _CODE_PAIRS and link is not None:
        name, kind = _CODE_PAIRS[element.name]
        return Markup(tag.text, raw, kind, f"{name} {link}", must_nest=False)
    return Markup(tag.text, raw, "alone")


def _as_xml(parts: Sequence[Part]) -> str:
    return "".join(escape(part) if isinstance(part, str) else part.raw for part in parts)


def _with_contents(document: Document, whole: Element, cuts: Sequence[Element], inners: Sequence[str]) -> str:
    """Return the content of `whole` with the content of each of the elements `cuts` inside it replaced."""
    written, done = [], whole.inside
    for cut, inner in zip(cuts, inners, strict=True):
        written += [document.text(done, cut.inside), inner]
        done = cut.inside_end
    return "".join([*written, document.text(done, whole.inside_end)])


def _with_content(document: Document, element: Element, attributes: dict[str, str], inner: str) -> list[Splice]:
    """Return the splices that set an element's attributes and content; an empty-element tag becomes two tags."""
    retagged = _with_attributes(document, element, attributes)
    if not element.is_empty_tag:
        return [retagged, Splice(element.inside, element.inside_end, inner)]
    name = f"{_prefix(document, element)}{element.name}"
    opening = retagged.text[:-2].rstrip() + ">"
    return [Splice(element.start, element.end, f"{opening}{inner}</{name}>")]


def _with_attributes(document: Document, element: Element, attributes: dict[str, str]) -> Splice:
    """Return the splice that sets some attributes of an element's start tag and leaves the others as written."""
    tag = document.text(element.start, element.inside)
    for name, value in attributes.items():
        found = _find_attribute(tag, name)
        if found is not None:
            tag = tag[: found[0]] + quoteattr(value) + tag[found[1] :]
        else:
            end = len(tag.removesuffix(">").removesuffix("/").rstrip())
            tag = f"{tag[:end]} {name}={quoteattr(value)}{tag[end:]}"
    return Splice(element.start, element.inside, tag)


def _find_attribute(tag: str, name: str) -> tuple[int, int] | None:
    """Return the start and end of an attribute's quoted value in a well-formed start tag."""
    position = 0
    while (equals := tag.find("=", position)) >= 0:
        opening = next(index for index in range(equals + 1, len(tag)) if tag[index] in "\"'")
        closing = tag.index(tag[opening], opening + 1)
        if tag[position:equals].split()[-1] == name:
            return opening, closing + 1
        position = closing + 1
    return None


def _prefix(document: Document, element: Element) -> str:
    """Return the namespace prefix of an element's name, with its colon, as the document writes it."""
    name = document.text(element.start + 1, element.inside).replace("/", " ").replace(">", " ").split()[0]
    prefix, colon, _ = name.rpartition(":")
    return prefix + colon


def _space_before(document: Document, element: Element) -> str:
    """Return the line break and indentation before an element, for a new sibling; empty without a line break."""
    before = document.content[max(0, element.start - 200) : element.start].decode("utf-8", "replace")
    space = before[len(before.rstrip()) :]
    return space if "\n" in space else ""
