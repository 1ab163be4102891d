"""TSV and JSON Lines with an empty or missing target: the rest stays byte for byte. Neither has a place for a mark."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from transduce.data.formats.columns import choose_columns, find_name
from transduce.documents.source import EXISTING, Gap, Source, Splice
from transduce.errors import DataError

_INNER = "translation"


def tsv_gaps(source: Source) -> Iterator[Gap]:
    """Yield the rows whose target is empty or missing."""
    columns = None
    for number, (start, line) in enumerate(_lines(source.content), start=1):
        cells = line.split(b"\t")
        where = f"{source.path}:{number}"
        if columns is None:
            columns = choose_columns([cell.decode() for cell in cells], source.selection, where=where)
            if columns.has_header:
                continue
        if columns.source >= len(cells) or not cells[columns.source].strip():
            continue
        if columns.target < len(cells):
            cell_start = start + sum(len(cell) + 1 for cell in cells[: columns.target])
            place, lead = (cell_start, cell_start + len(cells[columns.target])), ""
            if cells[columns.target].strip() and not source.overwrites:
                yield Gap(where, left=EXISTING)
                continue
        else:
            end = start + len(line)
            place, lead = (end, end), "\t" * (columns.target - len(cells) + 1)

        def fill(translations: Sequence[str], place: tuple[int, int] = place, lead: str = lead) -> list[Splice]:
            return [Splice(*place, lead + " ".join(translations[0].replace("\t", " ").splitlines()))]

        yield Gap(where, (cells[columns.source].decode(),), fill)


def json_lines_gaps(source: Source) -> Iterator[Gap]:
    """Yield the objects whose target is empty, null or missing."""
    keys: tuple[str, str] | None = None
    for number, (start, line) in enumerate(_lines(source.content), start=1):
        text = line.decode()
        if not text.strip():
            continue
        where = f"{source.path}:{number}"
        members, closed = _members(text, where=where)
        keys = keys or _keys(list(members), source, where=where)
        wanted = members[keys[0]][0] if keys[0] in members else None
        if not isinstance(wanted, str) or not wanted.strip():
            continue
        found = members.get(keys[1])
        if found is not None and found[0] not in (None, "") and not source.overwrites:
            yield Gap(where, left=EXISTING)
            continue
        ascii_only = text.isascii() and "\\u" in text
        if found is not None:
            place, lead = found[1:], ""
        else:
            before = len(text[:closed].rstrip())
            place, lead = (before, before), f"{', ' if members else ''}{json.dumps(keys[1])}: "
        first, last = (start + len(text[:offset].encode()) for offset in place)

        def fill(
            translations: Sequence[str],
            place: tuple[int, int] = (first, last),
            lead: str = lead,
            ascii_only: bool = ascii_only,
        ) -> list[Splice]:
            return [Splice(*place, lead + json.dumps(translations[0], ensure_ascii=ascii_only))]

        yield Gap(where, (wanted,), fill)


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where each line begins, and the line without its end."""
    start = 0
    for line in content.split(b"\n"):
        yield start, line.removesuffix(b"\r")
        start += len(line) + 1


def _members(text: str, *, where: str) -> tuple[dict[str, tuple[Any, int, int]], int]:
    """Return the members of the object on a line, each value with its place, and where the object ends."""
    try:
        whole = json.loads(text)
        opened = text.index("{")
        members, closed = _scan(text, opened)
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{where}: this line is no JSON object ({fault}). Mend the line.") from None
    if not isinstance(whole, dict):
        raise DataError(f"{where}: this line is no JSON object. Mend the line.")
    inner = members.get(_INNER)
    if inner is not None and isinstance(inner[0], dict):
        opened = inner[1]
        members, closed = _scan(text, opened)
    return members, closed


def _scan(text: str, opened: int) -> tuple[dict[str, tuple[Any, int, int]], int]:
    """Return an object's members with their places, and where its closing brace is. The text is known to be JSON."""
    decoder = json.JSONDecoder()
    members: dict[str, tuple[Any, int, int]] = {}
    position = _skip(text, opened + 1)
    while text[position] != "}":
        key, position = decoder.raw_decode(text, position)
        position = _skip(text, _skip(text, position) + 1)
        value, end = decoder.raw_decode(text, position)
        members[key] = value, position, end
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return members, position


def _skip(text: str, position: int) -> int:
    while text[position] in " \t\n\r":
        position += 1
    return position


def _keys(names: list[str], source: Source, *, where: str) -> tuple[str, str]:
    """Return the keys of source and target; a target that no object has yet is called after the source's way."""
    selection = source.selection
    by_language = find_name(names, [selection.source_language])
    if "source" in names and "target" not in names and selection.source_column is None:
        return "source", "target"
    if by_language is not None and find_name(names, ["target", selection.target_language]) is None:
        if selection.target_language is None:
            raise DataError(f"{where}: it is not known which language to fill in. Name it with --to.")
        return names[by_language], selection.target_language
    columns = choose_columns(names, selection, where=where)
    if max(columns.source, columns.target) >= len(names):
        raise DataError(f"{where}: this object has neither source nor target by name. Name its keys so.")
    return names[columns.source], names[columns.target]
