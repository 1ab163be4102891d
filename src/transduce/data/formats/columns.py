"""Choosing the source and target columns of a table: by the settings, else by the header, else the first two columns.

A column named in the settings must exist. A header may name the columns `source` and `target`, or by language tag (`en`
also finds `en-US`). A header that names only one of the two is refused, since reading the first two columns would train
on the wrong language.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from transduce.data.config import Column
from transduce.data.formats.pair import Selection
from transduce.errors import DataError

MOST_COLUMNS = 1000


class Columns(NamedTuple):
    """The columns of a pair, counted from 0, and whether the first row is a header."""

    source: int
    target: int
    has_header: bool


class _ColumnMatch(NamedTuple):
    column: int
    is_named: bool
    """Whether the first row names this column, so that it is a header."""


def choose_columns(first_row: Sequence[str], selection: Selection, *, location: str) -> Columns:
    """Return the pair's columns, given the first row of a file."""
    source = _find(first_row, selection.source_column, names=("source", selection.source_language), location=location)
    target = _find(first_row, selection.target_column, names=("target", selection.target_language), location=location)
    if source is None and target is not None and target.is_named:
        raise _header_without_column(first_row, "source", selection.source_language, location=location)
    if target is None and source is not None and source.is_named:
        raise _header_without_column(first_row, "target", selection.target_language, location=location)
    source, target = source or _ColumnMatch(0, is_named=False), target or _ColumnMatch(1, is_named=False)
    if source.column == target.column:
        raise DataError(
            f"{location}: both source and target would be column {source.column + 1}. "
            "Set both data.source_column and data.target_column (translate: --source-column, --target-column)."
        )
    return Columns(source.column, target.column, has_header=source.is_named or target.is_named)


def missing_column(row: Sequence[str], columns: Columns, *, path: Path, line: int, separator: str) -> DataError:
    """Return the error for a row that has too few columns."""
    needed = max(columns.source, columns.target) + 1
    return DataError(
        f"{path}:{line}: column {needed} is missing: this row has {len(row)} (a {separator} separates columns). "
        "Fix the row, or set data.source_column and data.target_column."
    )


def find_name(names: Sequence[str], wanted: Sequence[str | None]) -> int | None:
    """Return the index of the first wanted name; without one, of a tag of the same language, such as en-US for en."""
    known = [_plain(name) for name in names]
    plain = [_plain(name) for name in wanted if name]
    exact = next((known.index(name) for name in plain if name in known), None)
    if exact is not None:
        return exact
    return next((n for n, cell in enumerate(known) for name in plain if _same_language(cell, name)), None)


def quoted_names(names: Sequence[str]) -> str:
    """Return the first names, in quotes, for an error message."""
    return ", ".join(repr(name[:40]) for name in names[:8]) + (" …" if len(names) > 8 else "")


def _find(
    first_row: Sequence[str], column: Column | None, *, names: Sequence[str | None], location: str
) -> _ColumnMatch | None:
    if column is None:
        index = find_name(first_row, names)
        return None if index is None else _ColumnMatch(index, is_named=True)
    if isinstance(column, int):
        cell = first_row[column - 1 : column]
        return _ColumnMatch(column - 1, is_named=find_name(cell, names) is not None)
    index = find_name(first_row, [column])
    if index is None:
        raise DataError(
            f"{location}: there is no column {column!r}; the first row has {quoted_names(first_row)}. "
            "Set data.source_column and data.target_column (translate: --source-column, --target-column) to names of "
            "columns, or to numbers counted from 1."
        )
    return _ColumnMatch(index, is_named=True)


def _header_without_column(first_row: Sequence[str], missing: str, language: str | None, *, location: str) -> DataError:
    return DataError(
        f"{location}: the first row names the other column, but not the {missing}'s"
        f"{f' ({language})' if language else ''}; it has {quoted_names(first_row)}. "
        f"Set data.{missing}_column (translate: --{missing}-column) to a column's name, or to its number from 1."
    )


def _plain(name: str) -> str:
    return name.strip().casefold().replace("_", "-")


def _same_language(one: str, other: str) -> bool:
    return one.startswith(f"{other}-") or other.startswith(f"{one}-")
