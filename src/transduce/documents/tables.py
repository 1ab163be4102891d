"""TSV and CSV: fill in empty or missing targets. A table cannot mark a translation for review.

The columns are those of `choose_columns`: named by an option, by the header, or the first two. If they are not named
and the first has numbers or keys, the table is refused. A filled CSV cell is quoted if it or the source was quoted, or
if its text needs quotes.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from transduce.data.formats.columns import MOST_COLUMNS, Columns, choose_columns
from transduce.data.formats.delimited import DELIMITERS, SAMPLE_LINES, delimiter_of
from transduce.documents.document import TRANSLATED, Document, Gap, Splice
from transduce.errors import DataError

_T = TypeVar("_T")
_SAMPLE_ROWS = 100
_NAMES_OF_KEYS = frozenset(["id", "key", "no", "no.", "nr", "nr.", "number", "#", "index", "uuid", "guid", "code"])
# "12", "msg_1", "menu.open", "A-7": no spaces, and something that words do not have.
_KEY = re.compile(r"[^\W\d_]*+(?:[\d_#]|[.:/-](?=\w)).*+")
_QUOTED = re.compile(rb'"((?:[^"]++|"")*+)"')


class _Cell(NamedTuple):
    """A cell's text, and its offsets with the quotes."""

    text: str
    start: int
    end: int
    is_quoted: bool = False


def tsv_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every row of a TSV file that has a source."""
    return _gaps(document, _tsv_rows(document), delimiter="\t", has_quotes=False)


def csv_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every row of a CSV file that has a source."""
    sample = [line.decode("utf-8") for _, line in islice(document.lines(), SAMPLE_LINES)]
    delimiter, skipped = delimiter_of(sample)
    start = document.content.index(b"\n") + 1 if skipped and b"\n" in document.content else 0
    return _gaps(document, _csv_rows(document, start, delimiter.encode()), delimiter=delimiter, has_quotes=True)


def _gaps(document: Document, rows: Iterator[list[_Cell]], *, delimiter: str, has_quotes: bool) -> Iterator[Gap]:
    columns: Columns | None = None
    sample = list(islice(rows, _SAMPLE_ROWS))
    for cells in chain(sample, rows):
        location = document.location(cells[0].start)
        if columns is None:
            columns = choose_columns([cell.text for cell in cells], document.selection, location=location)
            if columns.has_header:
                continue
            if document.selection.source_column is None:
                _refuse_keys(sample, columns.source, location=location)
        source = cells[columns.source] if columns.source < len(cells) else None
        if source is None or not source.text.strip():
            continue
        target, lead = _Cell("", cells[-1].end, cells[-1].end), delimiter * (columns.target - len(cells) + 1)
        if columns.target < len(cells):
            target, lead = cells[columns.target], ""
        if target.text.strip() and not document.overwrites:
            yield Gap(location, skip_reason=TRANSLATED)
            continue
        is_quoted = has_quotes and (target.is_quoted or source.is_quoted)

        def fill(
            translations: Sequence[str], target: _Cell = target, lead: str = lead, is_quoted: bool = is_quoted
        ) -> list[Splice]:
            text = translations[0] if has_quotes else " ".join(translations[0].replace("\t", " ").splitlines())
            if is_quoted or (has_quotes and any(char in text for char in f'"\r\n{delimiter}')):
                text = '"' + text.replace('"', '""') + '"'
            return [Splice(target.start, target.end, lead + text)]

        yield Gap(location, (source.text,), fill)


def _refuse_keys(rows: Sequence[list[_Cell]], source: int, *, location: str) -> None:
    """Refuse a table whose source column nobody named, if it has keys and another column has text."""
    first = rows[0]
    has_header = bool(first[source].text) and first[source].text.strip().casefold() in _NAMES_OF_KEYS
    width = max(map(len, rows))
    texts = [_has_text(rows[1:] or rows, column) for column in range(width)]
    if not any(texts) or (texts[source] and not has_header):
        return
    column = next((number for number, is_text in enumerate(texts) if is_text and number != source), None)
    if column is None:
        return
    name = first[column].text if has_header and column < len(first) else f"{column + 1}"
    raise DataError(
        f"{location}: column {source + 1} has numbers or keys, and column {column + 1} has text. Name the columns of "
        f"texts and translations with --source-column and --target-column, such as --source-column '{name}' "
        f"--target-column {width + 1}, or in the first row as source and target. A column that is missing is added."
    )


def _has_text(rows: Sequence[list[_Cell]], column: int) -> bool:
    cells = [row[column].text.strip() for row in rows if column < len(row)]
    return any(any(map(str.isalpha, cell)) and (" " in cell or not _KEY.fullmatch(cell)) for cell in cells)


def _tsv_rows(document: Document) -> Iterator[list[_Cell]]:
    for start, line in document.lines():
        cells = []
        for cell in _bounded(document, start, line.split(b"\t", MOST_COLUMNS)):
            cells.append(_Cell(cell.decode("utf-8"), start, start + len(cell)))
            start += len(cell) + 1
        yield cells


def _csv_rows(document: Document, start: int, delimiter: bytes) -> Iterator[list[_Cell]]:
    """Yield the records of a CSV file; a record ends at a line end outside quotes."""
    content = document.content
    unquoted = re.compile(rb"[^\r\n" + delimiter + rb"]*+(?:\r(?!\n)[^\r\n" + delimiter + rb"]*+)*+")
    cells: list[_Cell] = []
    position = start
    while position < len(content):
        if content[position : position + 1] == b'"':
            cell = _QUOTED.match(content, position)
            if cell is None:
                raise document.fault(position, "the quote is not closed. Close it, and double quotes inside a field.")
            text = cell[1].replace(b'""', b'"')
        else:
            cell = unquoted.match(content, position)
            assert cell is not None, "the pattern matches the empty text"
            text = cell[0]
        cells.append(_Cell(text.decode("utf-8"), position, cell.end(), is_quoted=cell.re is _QUOTED))
        _bounded(document, cells[0].start, cells)
        position = cell.end()
        following = content[position : position + 1]
        if following == delimiter:
            position += 1
            if position == len(content):
                cells.append(_Cell("", position, position))
        elif following in (b"", b"\r", b"\n"):
            yield cells
            cells = []
            position += 2 if content[position : position + 2] == b"\r\n" else 1
        else:
            raise document.fault(
                position, f"there is text after the closing quote. Write a {DELIMITERS[delimiter.decode()]} first."
            )
    if cells:
        yield cells


def _bounded(document: Document, start: int, cells: list[_T]) -> list[_T]:
    if len(cells) > MOST_COLUMNS:
        raise document.fault(start, f"this row has more than {MOST_COLUMNS:,} columns. Give a table of texts.")
    return cells
