"""From a document to its filled-in form: find the gaps, translate them in windows, put the pieces in.

A translation that lost or repeated a placeholder or a tag, or was cut off, is not put in: its place stays empty, and
the report says where and why. Outcomes go into a journal as they come, so that interrupted work can be taken up again.
"""

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from transduce.data.formats.pair import Selection
from transduce.data.formats.po import encoding_of_po
from transduce.documents.catalogue import po_gaps
from transduce.documents.journal import Journal, Outcome
from transduce.documents.page import html_encoding, html_gaps
from transduce.documents.source import (
    EXISTING,
    DoesNotFitError,
    FindEncoding,
    Gap,
    Source,
    Splice,
    decode_source,
    read_content,
    xml_encoding,
)
from transduce.documents.tables import json_lines_gaps, tsv_gaps
from transduce.documents.units import tmx_gaps, xliff_gaps
from transduce.errors import DataError
from transduce.progress import Progress, Silent
from transduce.translator.translation import Translation

TEXTS_AT_ONCE = 256
CHARACTERS_AT_ONCE = 50_000

Translate = Callable[[Sequence[str], int], list[Translation]]
"""Translates texts, given the number of the first, which keys random draws."""


class Format(NamedTuple):
    """How a kind of document is read and where its gaps are."""

    endings: tuple[str, ...]
    gaps: Callable[[Source], Iterator[Gap]]
    encoding: FindEncoding
    is_markup: bool


def _utf_8(content: bytes, *, path: Path) -> str:
    return "utf-8"


FORMATS: Mapping[str, Format] = {
    "tsv": Format((".tsv",), tsv_gaps, _utf_8, is_markup=False),
    "jsonl": Format((".jsonl",), json_lines_gaps, _utf_8, is_markup=False),
    "po": Format((".po",), po_gaps, encoding_of_po, is_markup=False),
    "tmx": Format((".tmx",), tmx_gaps, xml_encoding, is_markup=True),
    "xliff": Format((".xlf", ".xliff"), xliff_gaps, xml_encoding, is_markup=True),
    "html": Format((".html", ".htm"), html_gaps, html_encoding, is_markup=True),
}


@dataclass
class FillingReport:
    """How many gaps were filled, and how many left for which reason."""

    filled: int = 0
    kept: int = 0
    """Had a translation already."""
    left: list[tuple[str, str, str]] = field(default_factory=list)
    """Where, why, and the text."""

    def reasons(self) -> Counter[str]:
        """Return how often each reason occurred."""
        return Counter(reason for _, reason, _ in self.left)


def format_of(path: Path) -> str | None:
    """Return the kind of document that a name's ending says, if it says one."""
    ending = path.suffix.lower()
    return next((name for name, kind in FORMATS.items() if ending in kind.endings), None)


def read_document(path: Path, name: str, *, selection: Selection, overwrites: bool = False) -> Source:
    """Read a document of a named kind."""
    return document_of(read_content(path), name, path=path, selection=selection, overwrites=overwrites)


def document_of(content: bytes, name: str, *, path: Path, selection: Selection, overwrites: bool = False) -> Source:
    """Return the document of a named kind that some bytes are; `path` is what messages call it."""
    if name not in FORMATS:
        raise DataError(f"{name!r} is no format to fill in. Choose one of {', '.join(FORMATS)}.")
    kind = FORMATS[name]
    return decode_source(
        content,
        path=path,
        selection=selection,
        overwrites=overwrites,
        encoding=kind.encoding,
        is_markup=kind.is_markup,
    )


def fill_at_once(source: Source, name: str, translate: Translate) -> tuple[bytes, FillingReport]:
    """Return a document filled in, and what was done, without anything kept for later: for a server's requests."""
    with tempfile.TemporaryFile() as file:
        return fill_document(source, name, translate, journal=Journal(file, "{}", name="the journal"))


def journal_header(source: Source, settings: Mapping[str, Any]) -> str:
    """Return the line that says what a journal is about: the document, what is asked of it, and by which means."""
    about = {
        "document": hashlib.sha256(source.content).hexdigest(),
        "languages": [source.selection.source_language, source.selection.target_language],
        "overwrites": source.overwrites,
        **settings,
    }
    return json.dumps(about, sort_keys=True, default=str)


def fill_document(
    source: Source, name: str, translate: Translate, *, journal: Journal, progress: Progress | None = None
) -> tuple[bytes, FillingReport]:
    """Return the document with its gaps filled in, and what was done; what the journal has is not translated again."""
    gaps = list(FORMATS[name].gaps(source))
    texts = [text for gap in gaps for text in gap.texts]
    with (progress or Silent()).stage("translating", total=len(texts), unit="segments") as stage:
        stage.advance(min(journal.count, len(texts)))
        rest = iter(texts[journal.count :])
        while window := _window(rest):
            journal.append([_outcome(translation) for translation in translate(window, journal.count)])
            stage.advance(len(window))
    report = FillingReport()
    splices: list[Splice] = []
    outcomes = iter(journal)
    once: set[Splice] = set()
    for gap in gaps:
        own = list(islice(outcomes, len(gap.texts)))
        pieces, fault = _pieces(gap, own)
        if gap.left == EXISTING:
            report.kept += 1
        elif fault:
            report.left.append((gap.where, fault, " / ".join(gap.texts)))
        elif gap.texts:
            report.filled += 1
            splices += pieces
            once |= {gap.once} if gap.once is not None else set()
    return source.with_splices([*splices, *once]), report


def _pieces(gap: Gap, outcomes: Sequence[Outcome]) -> tuple[list[Splice], str]:
    fault = gap.left or next((outcome.fault for outcome in outcomes if outcome.fault), "")
    if fault or not gap.texts:
        return [], fault
    try:
        return gap.fill([outcome.translation for outcome in outcomes]), ""
    except DoesNotFitError as reason:
        return [], str(reason)


def _outcome(translation: Translation) -> Outcome:
    if translation.refusal:
        return Outcome("", translation.refusal)
    if translation.missing:
        return Outcome("", f"{', '.join(translation.missing)} got lost")
    if translation.surplus:
        return Outcome("", f"{', '.join(translation.surplus)} is repeated")
    if not translation.alternatives[0].is_finished:
        return Outcome("", "the translation does not come to an end")
    if not translation.text.strip():
        return Outcome("", "the translation is empty")
    return Outcome(translation.text)


def _window(texts: Iterator[str]) -> list[str]:
    window: list[str] = []
    characters = 0
    for text in texts:
        window.append(text)
        characters += len(text)
        if len(window) == TEXTS_AT_ONCE or characters > CHARACTERS_AT_ONCE:
            break
    return window
