"""TMX, the exchange format of translation memories: units that hold the same segment in several languages.

A unit without one of the two chosen languages is skipped and counted. Which languages there are can only be told when
the file has been read, so a choice that fits no unit is an error at its end, with all that it holds.
"""

from collections import Counter
from collections.abc import Iterator

from transduce.data.formats.columns import find_name
from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.inline_tags import inline_text
from transduce.data.formats.languages import no_such_pair
from transduce.data.formats.pair import Pair, Selection
from transduce.data.formats.xml_units import Element, read_units

UNITS = frozenset({"tu"})
ONE_SIDED = "not in both languages"


def read_tmx(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of a translation memory."""
    offered: Counter[str] = Counter()
    is_found = False
    with file.opened() as stream:
        for unit in read_units(stream, path=file.path, names=UNITS):
            variants = variants_of(unit.element)
            offered.update(language for language, _ in variants)
            source, target = (
                choose_variant(variants, language)
                for language in (selection.source_language, selection.target_language)
            )
            texts = [segment_text(variant) if variant is not None else "" for variant in (source, target)]
            is_pair = source is not None and target is not None and source is not target
            is_found |= is_pair
            yield Pair(texts[0], texts[1], unit.element.line, skipped="" if is_pair else ONE_SIDED)
    if not is_found:
        raise no_such_pair(file.path, selection, offered)


def variants_of(unit: Element) -> list[tuple[str, Element]]:
    """Return a unit's languages, each with its variant; TMX 1.1 wrote `lang` where later ones write `xml:lang`."""
    found = []
    for variant in unit.all("tuv"):
        language = variant.attributes.get("xml:lang") or variant.attributes.get("lang")
        if language:
            found.append((language, variant))
    return found


def choose_variant(variants: list[tuple[str, Element]], language: str | None) -> Element | None:
    """Return the variant in a language: the exact tag, else the first of the same language."""
    place = find_name([name for name, _ in variants], [language]) if language else None
    return None if place is None else variants[place][1]


def segment_text(variant: Element) -> str:
    """Return the text of a variant, tags included."""
    segment = variant.first("seg")
    return "" if segment is None else inline_text(segment)
