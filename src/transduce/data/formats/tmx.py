"""TMX, the exchange format of translation memories: each unit holds the same segment in several languages.

A unit without one of the two chosen languages is skipped and counted. If no unit has both, the error comes at the end
of the file, where all its languages are known, and lists them.
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
            is_pair = source is not None and target is not None and source is not target
            is_found |= is_pair
            skipped = "" if is_pair else ONE_SIDED
            yield Pair(_segment_text(source), _segment_text(target), unit.element.line, skipped=skipped)
    if not is_found:
        raise no_such_pair(file.path, selection, offered)


def variants_of(unit: Element) -> list[tuple[str, Element]]:
    """Return a unit's variants with their languages; TMX 1.1 has `lang` where later versions have `xml:lang`."""
    variants = unit.all("tuv")
    languages = [variant.attributes.get("xml:lang") or variant.attributes.get("lang") for variant in variants]
    return [(language, variant) for language, variant in zip(languages, variants, strict=True) if language]


def choose_variant(variants: list[tuple[str, Element]], language: str | None) -> Element | None:
    """Return the variant with exactly this language tag, else the first of the same language."""
    index = find_name([name for name, _ in variants], [language])
    return None if index is None else variants[index][1]


def _segment_text(variant: Element | None) -> str:
    segment = None if variant is None else variant.first("seg")
    return "" if segment is None else inline_text(segment)
