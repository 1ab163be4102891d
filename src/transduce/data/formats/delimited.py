"""TSV and CSV tables of pairs: TSV splits at every tab and has no quotes; CSV has quotes and any of three delimiters.

In many countries Excel writes CSV with semicolons, sometimes after a first line `sep=;`. Without that line, the
delimiter is the one that splits the first lines most evenly.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from transduce.data.formats.columns import MOST_COLUMNS, Columns, choose_columns, missing_column
from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.pair import Pair, Selection
from transduce.errors import DataError

DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma"}
SAMPLE_LINES = 50


def read_tsv(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of a file with a tab between columns and no quoting."""
    rows = ((number, line.split("\t", MOST_COLUMNS)) for number, line in enumerate(file.lines(), start=1))
    return _pairs(rows, file, selection, separator="tab")


def read_csv(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of a file with quoted fields, whose delimiter is a comma, a semicolon or a tab."""
    lines = file.lines()
    sample = list(islice(lines, SAMPLE_LINES))
    delimiter, skipped = delimiter_of(sample)
    rows = _csv_rows(chain(sample[skipped:], lines), delimiter, file=file, skipped=skipped)
    return _pairs(rows, file, selection, separator=DELIMITERS[delimiter])


def _csv_rows(
    lines: Iterable[str], delimiter: str, *, file: CorpusFile, skipped: int
) -> Iterator[tuple[int, list[str]]]:
    record: list[str] = []  # the lines of the current record

    def recorded() -> Iterator[str]:
        for line in lines:
            record.append(f"{line}\n")
            yield record[-1]

    reader = csv.reader(recorded(), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + skipped + 1
        record.clear()
        try:
            row = next(reader, None)
        except csv.Error as fault:
            before = _before_fault("".join(record), delimiter)
            place = f"{line + before.count(chr(10))}:{len(before) - before.rfind(chr(10))}"
            raise DataError(
                f"{file.path}:{place}: the field that starts here is not valid CSV ({fault}). Close every quoted "
                "field, and double each quote inside one."
            ) from fault
        if row is None:
            return
        yield line, row


def _before_fault(record: str, delimiter: str) -> str:
    """Return the part of a record before its first field that is not valid CSV."""
    field = re.compile(rf'(?:"(?:[^"]++|"")*+"|[^"{delimiter}\n][^{delimiter}\n]*+)?(?:{delimiter}|\n)')
    position = 0
    while match := field.match(record, position):
        position = match.end()
    return record[:position]


def _pairs(
    rows: Iterator[tuple[int, list[str]]], file: CorpusFile, selection: Selection, *, separator: str
) -> Iterator[Pair]:
    columns: Columns | None = None
    for line, row in rows:
        if len(row) > MOST_COLUMNS:
            raise DataError(
                f"{file.path}:{line}: this row has more than {MOST_COLUMNS:,} columns. Give a table of pairs."
            )
        if columns is None:
            columns = choose_columns(row, selection, location=f"{file.path}:{line}")
            if columns.has_header:
                continue
        if len(row) > max(columns.source, columns.target):
            yield Pair(row[columns.source], row[columns.target], line)
        elif not any(row):
            yield Pair("", "", line)
        else:
            raise missing_column(row, columns, path=file.path, line=line, separator=separator)


def delimiter_of(sample: list[str]) -> tuple[str, int]:
    """Return the delimiter of a CSV file, given its first lines, and how many of these only declare it (0 or 1)."""
    if sample and sample[0].casefold().startswith("sep=") and sample[0][4:] in DELIMITERS:
        return sample[0][4:], 1
    return max(DELIMITERS, key=lambda delimiter: _evenness(sample, delimiter)), 0


def _evenness(lines: list[str], delimiter: str) -> float:
    """Return the share of rows with the most common number of columns; 0 if that is one, or if the quotes are wrong."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)
    widths: Counter[int] = Counter()
    try:
        for row in reader:
            widths[len(row)] += bool(row)
    except csv.Error:
        if reader.line_num < len(lines):  # else the sample merely ends inside a quoted field
            return 0.0
    width, rows = max(widths.items(), key=lambda item: item[1], default=(0, 0))
    return rows / widths.total() if width > 1 else 0.0
