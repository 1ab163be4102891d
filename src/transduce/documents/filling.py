"""Filling in a document: find its gaps, translate them in windows, and splice the translations in.

A translation that lost or repeated a placeholder or a tag, or that was cut off, is not filled in: its gap stays empty
and the report says where and why. Every window goes into a journal, from which interrupted work is resumed.
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
from transduce.documents.page import html_encoding, html_gaps
from transduce.documents.tables import json_lines_gaps, tsv_gaps
from transduce.documents.units import tmx_gaps, xliff_gaps
from transduce.errors import DataError
from transduce.progress import Progress, Silent
from transduce.translator.translation import Translation

TEXTS_AT_ONCE = 256
CHARACTERS_AT_ONCE = 50_000

Translate = Callable[[Sequence[str], int], list[Translation]]
"""Translates texts, given the number of the first one, which seeds random draws."""


class DocumentFormat(NamedTuple):
    """How to recognise and decode a kind of document, and how to find its gaps."""

    endings: tuple[str, ...]
    gaps: Callable[[Document], Iterator[Gap]]
    encoding: FindEncoding
    is_markup: bool


def _utf_8(content: bytes, *, path: Path) -> str:
    return "utf-8"


FORMATS: Mapping[str, DocumentFormat] = {
    "tsv": DocumentFormat((".tsv",), tsv_gaps, _utf_8, is_markup=False),
    "jsonl": DocumentFormat((".jsonl",), json_lines_gaps, _utf_8, is_markup=False),
    "po": DocumentFormat((".po",), po_gaps, encoding_of_po, is_markup=False),
    "tmx": DocumentFormat((".tmx",), tmx_gaps, xml_encoding, is_markup=True),
    "xliff": DocumentFormat((".xlf", ".xliff"), xliff_gaps, xml_encoding, is_markup=True),
    "html": DocumentFormat((".html", ".htm"), html_gaps, html_encoding, is_markup=True),
}


@dataclass
class FillingReport:
    """Counts of the gaps that were filled or kept, and the list of those left empty."""

    filled: int = 0
    kept: int = 0
    """Gaps that had a translation already."""
    left: list[tuple[str, str, str]] = field(default_factory=list)
    """Location, reason and text of every gap left empty."""

    def reasons(self) -> Counter[str]:
        """Return how many gaps were left empty for each reason."""
        return Counter(reason for _, reason, _ in self.left)


def format_of(path: Path) -> str | None:
    """Return the name of the format that a file's ending stands for; None if it stands for none."""
    ending = path.suffix.lower()
    return next((name for name, kind in FORMATS.items() if ending in kind.endings), None)


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
    """Return the document of the named format in `content`; error messages call it `path`."""
    if name not in FORMATS:
        raise DataError(f"{name!r} is not a format that can be filled in. Choose one of {', '.join(FORMATS)}.")
    kind = FORMATS[name]
    return decode_document(
        content,
        path=path,
        selection=selection,
        overwrites=overwrites,
        encoding=kind.encoding,
        is_markup=kind.is_markup,
    )


def fill_at_once(document: Document, name: str, translate: Translate) -> tuple[bytes, FillingReport]:
    """Return a document filled in, and the report, without a journal on disk: for requests to a server."""
    return fill_document(document, name, translate, journal=Journal(io.BytesIO(), "{}", name="the journal"))


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
    document: Document, name: str, translate: Translate, *, journal: Journal, progress: Progress | None = None
) -> tuple[bytes, FillingReport]:
    """Return the document with its gaps filled in, and the report; translates only what the journal does not hold."""
    gaps = list(FORMATS[name].gaps(document))
    texts = [text for gap in gaps for text in gap.texts]
    with (progress or Silent()).stage("translating", total=len(texts), unit="segments") as stage:
        stage.advance(min(journal.count, len(texts)))
        rest = iter(texts[journal.count :])
        while window := _window(rest):
            journal.append([_journal_entry(translation) for translation in translate(window, journal.count)])
            stage.advance(len(window))
    report = FillingReport()
    splices: set[Splice] = set()  # a set, since gaps of one file share the splice that names its language
    entries = iter(journal)
    for gap in gaps:
        filling, fault = _splices(gap, list(islice(entries, len(gap.texts))))
        if gap.skip_reason == TRANSLATED:
            report.kept += 1
        elif fault:
            report.left.append((gap.location, fault, " / ".join(gap.texts)))
        elif gap.texts:
            report.filled += 1
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


def _journal_entry(translation: Translation) -> JournalEntry:
    if translation.refusal:
        return JournalEntry("", translation.refusal)
    if translation.missing:
        return JournalEntry("", f"{', '.join(translation.missing)} got lost")
    if translation.surplus:
        return JournalEntry("", f"{', '.join(translation.surplus)} is repeated")
    if not translation.alternatives[0].is_finished:
        return JournalEntry("", "the translation was cut off")
    if not translation.text.strip():
        return JournalEntry("", "the translation is empty")
    return JournalEntry(translation.text)


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
