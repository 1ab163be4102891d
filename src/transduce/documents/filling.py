"""Filling in a document: find its gaps, translate them in windows, and splice the translations in.

A translation that lost or repeated a placeholder, tag or number, that stutters, has an odd length or was cut off, or
whose confidence is too low, is not filled in: its gap stays empty and the report says where and why (`FillingRules`).
Every window goes into a journal, from which interrupted work is resumed.
"""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from transduce.data.formats.corpus_file import COMPRESSIONS
from transduce.data.formats.pair import Selection
from transduce.data.formats.po import encoding_of_po
from transduce.documents.catalogue import po_gaps
from transduce.documents.document import (
    TRANSLATED,
    Document,
    DoesNotFitError,
    FindEncoding,
    Gap,
    Splice,
    decode_document,
    xml_encoding,
)
from transduce.documents.journal import Journal, JournalEntry
from transduce.documents.json_texts import json_gaps, json_lines_gaps
from transduce.documents.kinds import are_mostly_whole
from transduce.documents.markdown import markdown_gaps
from transduce.documents.office import unpack_word, word_gaps
from transduce.documents.page import html_encoding, html_gaps
from transduce.documents.properties import properties_encoding, properties_gaps
from transduce.documents.subtitles import srt_gaps, vtt_gaps
from transduce.documents.tables import csv_gaps, tsv_gaps
from transduce.documents.units import tmx_gaps, xliff_gaps
from transduce.errors import DataError
from transduce.progress import Progress, Silent
from transduce.translator.tag_placing import attention_of
from transduce.translator.translation import Translation
from transduce.translator.translator import Translator

TEXTS_AT_ONCE = 256
UNSURE_BELOW = 0.5
CHARACTERS_AT_ONCE = 50_000
_TEXTS_TO_TRY = 8

Translate = Callable[[Sequence[str], int], list[Translation]]
"""Translates texts, given the number of the first one, which seeds random draws."""


class DocumentFormat(NamedTuple):
    """How to decode a kind of document and how to find its gaps; `kinds` lists its file endings."""

    gaps: Callable[[Document], Iterator[Gap]]
    encoding: FindEncoding
    is_markup: bool
    unpack: Callable[..., Document] | None = None
    """Reads a package of several files, in place of decoding one text."""


def _utf_8(content: bytes, *, path: Path) -> str:
    return "utf-8"


FORMATS: Mapping[str, DocumentFormat] = {
    "tsv": DocumentFormat(tsv_gaps, _utf_8, is_markup=False),
    "csv": DocumentFormat(csv_gaps, _utf_8, is_markup=False),
    "json": DocumentFormat(json_gaps, _utf_8, is_markup=False),
    "properties": DocumentFormat(properties_gaps, properties_encoding, is_markup=False),
    "srt": DocumentFormat(srt_gaps, _utf_8, is_markup=False),
    "vtt": DocumentFormat(vtt_gaps, _utf_8, is_markup=False),
    "markdown": DocumentFormat(markdown_gaps, _utf_8, is_markup=False),
    "docx": DocumentFormat(word_gaps, _utf_8, is_markup=True, unpack=unpack_word),
    "jsonl": DocumentFormat(json_lines_gaps, _utf_8, is_markup=False),
    "po": DocumentFormat(po_gaps, encoding_of_po, is_markup=False),
    "tmx": DocumentFormat(tmx_gaps, xml_encoding, is_markup=True),
    "xliff": DocumentFormat(xliff_gaps, xml_encoding, is_markup=True),
    "html": DocumentFormat(html_gaps, html_encoding, is_markup=True),
}


@dataclass(frozen=True)
class FillingRules:
    """Which translations are not filled in."""

    leave_below: float = 0.0
    """The least confidence of a translation that is filled in; 0 fills in all."""
    fills_incomplete: bool = False
    """Whether translations that lost a placeholder, number or term are filled in, and noted in the report."""

    def entry(self, translation: Translation) -> JournalEntry:
        """Return the journal's entry: the translation, or why it is not filled in."""
        lost = _lost(translation)
        if fault := _fault(translation):
            return JournalEntry("", fault)
        if lost and not self.fills_incomplete:
            return JournalEntry("", lost)
        if translation.confidence is not None and translation.confidence < self.leave_below:
            return JournalEntry("", f"its confidence is below {self.leave_below:g}")
        return JournalEntry(translation.text, note=lost, confidence=translation.confidence)


def _fault(translation: Translation) -> str:
    """Return why a translation cannot be filled in, or an empty text."""
    if translation.refusal:
        return translation.refusal
    if translation.surplus:
        return f"{', '.join(translation.surplus)} is repeated"
    if not translation.alternatives[0].is_finished:
        return "the translation was cut off"
    if not translation.text.strip():
        return "the translation is empty"
    if "stutter" in translation.doubts:
        return "the translation stutters"
    return "the translation is much longer or shorter" if "length" in translation.doubts else ""


def _lost(translation: Translation) -> str:
    if translation.missing:
        return f"{', '.join(translation.missing)} got lost"
    return f"the number {', '.join(translation.missing_numbers)} got lost" if translation.missing_numbers else ""


@dataclass
class FillingReport:
    """Counts of the gaps that were filled or kept, and the list of those left empty."""

    filled: int = 0
    kept: int = 0
    """Gaps that had a translation already."""
    unsure: int = 0
    """Filled gaps with a confidence below `UNSURE_BELOW`."""
    left: list[tuple[str, str, str]] = field(default_factory=list)
    """Location, reason and text of every gap left empty."""
    noted: list[tuple[str, str, str]] = field(default_factory=list)
    """Location, loss and text of every gap that was filled although something got lost."""

    def reasons(self) -> Counter[str]:
        """Return how many gaps were left empty for each kind of reason."""
        return Counter(_kind(reason) for _, reason, _ in self.left)


def _kind(reason: str) -> str:
    if reason.endswith(" got lost"):
        return "a number got lost" if reason.startswith("the number ") else "a placeholder or term got lost"
    return "a placeholder is repeated" if reason.endswith(" is repeated") else reason


def read_document(path: Path, name: str, *, selection: Selection, overwrites: bool = False) -> Document:
    """Read a document of the named format from a file."""
    if path.suffix.lower() in COMPRESSIONS:
        raise DataError(f"{path} is compressed. Decompress it first: a document is filled in as it is.")
    try:
        content = path.read_bytes()
    except OSError as fault:
        raise DataError(f"{path} cannot be read ({fault.strerror}). Check its name and permissions.") from None
    return document_of(content, name, path=path, selection=selection, overwrites=overwrites)


def document_of(content: bytes, name: str, *, path: Path, selection: Selection, overwrites: bool = False) -> Document:
    """Return the document of the named format in `content`; `path` is its name in error messages."""
    if name not in FORMATS:
        raise DataError(f"{name!r} is not a format that can be filled in. Choose one of {', '.join(FORMATS)}.")
    kind = FORMATS[name]
    if kind.unpack is not None:
        return kind.unpack(content, path=path, selection=selection, overwrites=overwrites)
    return decode_document(
        content,
        path=path,
        selection=selection,
        overwrites=overwrites,
        encoding=kind.encoding,
        is_markup=kind.is_markup,
    )


def copies_tags(document: Document, name: str, translator: Translator, *, keep_placeholders: str = "enforce") -> bool:
    """Return whether tags come back: by word alignment, or copied in half of the document's first texts with tags."""
    if attention_of(translator.stepper) and keep_placeholders == "enforce":
        return True
    texts = texts_with_tags(document, name)
    tried = translator.translate(texts, beam=1, keep_placeholders="report") if texts else []
    return are_mostly_whole([(translation.missing, translation.surplus) for translation in tried])


def texts_with_tags(document: Document, name: str) -> list[str]:
    """Return the document's first texts with tags, on which a model is tried."""
    tagged = (gap.texts[0] for gap in FORMATS[name].gaps(document) if gap.untagged is not None)
    return list(islice(tagged, _TEXTS_TO_TRY))


def gaps_of(document: Document, name: str) -> list[Gap]:
    """Return the gaps of a document, in the form that its model can translate."""
    gaps = FORMATS[name].gaps(document)
    return [gap if document.copies_tags or gap.untagged is None else gap.untagged for gap in gaps]


def fill_at_once(
    document: Document,
    name: str,
    translate: Translate,
    *,
    rules: FillingRules = FillingRules(),  # noqa: B008 - it is frozen
) -> tuple[bytes, FillingReport]:
    """Fill in a document without a journal on disk, for requests to a server; return it and the report."""
    journal = Journal(io.BytesIO(), "{}", name="the journal")
    return fill_document(document, name, translate, journal=journal, rules=rules)


def journal_header(document: Document, settings: Mapping[str, Any]) -> str:
    """Return the header that identifies the work a journal belongs to: the document, its languages, the settings."""
    about = {
        "document": hashlib.sha256(document.content).hexdigest(),
        "languages": [document.selection.source_language, document.selection.target_language],
        "overwrites": document.overwrites,
        **settings,
    }
    return json.dumps(about, sort_keys=True, default=str)


def fill_document(
    document: Document,
    name: str,
    translate: Translate,
    *,
    journal: Journal,
    rules: FillingRules = FillingRules(),  # noqa: B008 - it is frozen
    progress: Progress | None = None,
) -> tuple[bytes, FillingReport]:
    """Fill in the gaps of a document, translating only texts not in the journal; return it and the report."""
    gaps = gaps_of(document, name)
    texts = [text for gap in gaps for text in gap.texts]
    with (progress or Silent()).stage("translating", total=len(texts), unit="segments") as stage:
        stage.advance(min(journal.count, len(texts)))
        rest = iter(texts[journal.count :])
        while window := _window(rest):
            journal.append([rules.entry(translation) for translation in translate(window, journal.count)])
            stage.advance(len(window))
    report = FillingReport()
    splices: set[Splice] = set()  # a set, since gaps of one file share the splice that names its language
    entries = iter(journal)
    for gap in gaps:
        own = list(islice(entries, len(gap.texts)))
        filling, fault = _splices(gap, own)
        if gap.skip_reason == TRANSLATED:
            report.kept += 1
        elif fault:
            report.left.append((gap.location, fault, " / ".join(gap.texts)))
        elif gap.texts:
            report.filled += 1
            report.unsure += any(each.confidence is not None and each.confidence < UNSURE_BELOW for each in own)
            report.noted += [(gap.location, each.note, " / ".join(gap.texts)) for each in own if each.note]
            splices.update(filling, [gap.shared_splice] if gap.shared_splice else [])
    return document.with_splices(list(splices)), report


def _splices(gap: Gap, entries: Sequence[JournalEntry]) -> tuple[list[Splice], str]:
    """Return the splices that fill a gap, or why it stays empty."""
    fault = gap.skip_reason or next((entry.fault for entry in entries if entry.fault), "")
    if fault or not gap.texts:
        return [], fault
    try:
        return gap.fill([entry.translation for entry in entries]), ""
    except DoesNotFitError as reason:
        return [], str(reason)


def _window(texts: Iterator[str]) -> list[str]:
    """Take the next texts to translate together."""
    window: list[str] = []
    characters = 0
    for text in texts:
        window.append(text)
        characters += len(text)
        if len(window) == TEXTS_AT_ONCE or characters > CHARACTERS_AT_ONCE:
            break
    return window
