"""Which column of a file is the source and which the target: by what was asked for, by name, by place, in this order.

A column asked for by name must be there. Otherwise the header may say `source` and `target`, or the languages' tags
(`en` also finds `en-US`); a file that has a column for one language and none for the other is refused, since reading
its first two columns would train on the wrong language. Without such a header, the first two columns are the pair.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from transduce.data.config import Column
from transduce.data.formats.pair import Selection
from transduce.errors import DataError


class Columns(NamedTuple):
    """Where the pair is, from 0, and whether the first row only names the columns."""

    source: int
    target: int
    has_header: bool


class _Found(NamedTuple):
    place: int
    is_named: bool


def choose_columns(first_row: Sequence[str], selection: Selection, *, where: str) -> Columns:
    """Return the pair's columns, given the first row of a file."""
    source = _find(first_row, selection.source_column, names=("source", selection.source_language), where=where)
    target = _find(first_row, selection.target_column, names=("target", selection.target_language), where=where)
    if source is None and target is not None and target.is_named:
        raise _half_a_header(first_row, "source", selection.source_language, where=where)
    if target is None and source is not None and source.is_named:
        raise _half_a_header(first_row, "target", selection.target_language, where=where)
    source, target = source or _Found(0, is_named=False), target or _Found(1, is_named=False)
    if source.place == target.place:
        raise DataError(
            f"{where}: source and target would both be column {source.place + 1}. "
            "Set both data.source_column and data.target_column."
        )
    return Columns(source.place, target.place, has_header=source.is_named or target.is_named)


def missing_column(row: Sequence[str], columns: Columns, *, path: Path, line: int, separator: str) -> DataError:
    """Return the error for a row that ends before the pair does."""
    needed = max(columns.source, columns.target) + 1
    return DataError(
        f"{path}:{line}: column {needed} is missing: this row has {len(row)} (a {separator} separates columns). "
        "Mend the row, or set data.source_column and data.target_column."
    )


def find_name(names: Sequence[str], wanted: Sequence[str | None]) -> int | None:
    """Return the place of the first wanted name; failing that, of a tag of the same language, as en for en-US."""
    known = [_plain(name) for name in names]
    plain = [_plain(name) for name in wanted if name]
    exact = next((known.index(name) for name in plain if name in known), None)
    if exact is not None:
        return exact
    return next((n for n, cell in enumerate(known) for name in plain if _same_language(cell, name)), None)


def shown(names: Sequence[str]) -> str:
    """Return some names for an error message."""
    return ", ".join(repr(name[:40]) for name in names[:8]) + (" …" if len(names) > 8 else "")


def _find(first_row: Sequence[str], column: Column | None, *, names: Sequence[str | None], where: str) -> _Found | None:
    if column is None:
        place = find_name(first_row, names)
        return None if place is None else _Found(place, is_named=True)
    if isinstance(column, int):
        cell = first_row[column - 1 : column]
        return _Found(column - 1, is_named=find_name(cell, names) is not None)
    place = find_name(first_row, [column])
    if place is None:
        raise DataError(
            f"{where}: there is no column {column!r}; the first row has {shown(first_row)}. "
            "Set data.source_column and data.target_column to names that it has, or to places counted from 1."
        )
    return _Found(place, is_named=True)


def _half_a_header(first_row: Sequence[str], missing: str, language: str | None, *, where: str) -> DataError:
    return DataError(
        f"{where}: the first row names the other side, but no column for the {missing}"
        f"{f' ({language})' if language else ''}; it has {shown(first_row)}. "
        f"Set data.{missing}_column to a name that it has, or to a place counted from 1."
    )


def _plain(name: str) -> str:
    return name.strip().casefold().replace("_", "-")


def _same_language(one: str, other: str) -> bool:
    return one.startswith(f"{other}-") or other.startswith(f"{one}-")
