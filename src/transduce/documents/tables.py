"""TSV and JSON Lines: fill in empty or missing targets. Neither format can mark a translation for review."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from transduce.data.formats.columns import choose_columns, find_name
from transduce.data.formats.json_lines import NESTED_KEY
from transduce.documents.document import TRANSLATED, Document, Gap, Splice
from transduce.errors import DataError


def tsv_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every row that has a source."""
    columns = None
    for number, (start, line) in enumerate(_lines(document.content), start=1):
        cells = line.split(b"\t")
        location = f"{document.path}:{number}"
        if columns is None:
            columns = choose_columns([cell.decode() for cell in cells], document.selection, location=location)
            if columns.has_header:
                continue
        if columns.source >= len(cells) or not cells[columns.source].strip():
            continue
        if columns.target < len(cells):
            cell_start = start + sum(len(cell) + 1 for cell in cells[: columns.target])
            place, lead = (cell_start, cell_start + len(cells[columns.target])), ""
            if cells[columns.target].strip() and not document.overwrites:
                yield Gap(location, skip_reason=TRANSLATED)
                continue
        else:
            end = start + len(line)
            place, lead = (end, end), "\t" * (columns.target - len(cells) + 1)

        def fill(translations: Sequence[str], place: tuple[int, int] = place, lead: str = lead) -> list[Splice]:
            return [Splice(*place, lead + " ".join(translations[0].replace("\t", " ").splitlines()))]

        yield Gap(location, (cells[columns.source].decode(),), fill)


def json_lines_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every object that has a source."""
    keys: tuple[str, str] | None = None
    for number, (start, line) in enumerate(_lines(document.content), start=1):
        text = line.decode()
        if not text.strip():
            continue
        location = f"{document.path}:{number}"
        members, closing_brace = _members(text, location=location)
        keys = keys or _keys(list(members), document, location=location)
        source = members[keys[0]][0] if keys[0] in members else None
        if not isinstance(source, str) or not source.strip():
            continue
        target = members.get(keys[1])
        if target is not None and target[0] not in (None, "") and not document.overwrites:
            yield Gap(location, skip_reason=TRANSLATED)
            continue
        ascii_only = text.isascii() and "\\u" in text
        if target is not None:
            place, lead = target[1:], ""
        else:
            end = len(text[:closing_brace].rstrip())
            place, lead = (end, end), f"{', ' if members else ''}{json.dumps(keys[1])}: "
        first, last = (start + len(text[:offset].encode()) for offset in place)

        def fill(
            translations: Sequence[str],
            place: tuple[int, int] = (first, last),
            lead: str = lead,
            ascii_only: bool = ascii_only,
        ) -> list[Splice]:
            return [Splice(*place, lead + json.dumps(translations[0], ensure_ascii=ascii_only))]

        yield Gap(location, (source,), fill)


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield every line without its end, and its offset."""
    start = 0
    for line in content.split(b"\n"):
        yield start, line.removesuffix(b"\r")
        start += len(line) + 1


def _members(text: str, *, location: str) -> tuple[dict[str, tuple[Any, int, int]], int]:
    """Return `_scan_object` of the object on a line, or of the object inside it that holds the translation."""
    try:
        is_object = isinstance(json.loads(text), dict)
        members, closing_brace = _scan_object(text, text.index("{"))
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{location}: this line is not a JSON object ({fault}). Fix the line.") from None
    if not is_object:
        raise DataError(f"{location}: this line is not a JSON object. Fix the line.")
    nested = members.get(NESTED_KEY)
    if nested is not None and isinstance(nested[0], dict):
        return _scan_object(text, nested[1])
    return members, closing_brace


def _scan_object(text: str, opening_brace: int) -> tuple[dict[str, tuple[Any, int, int]], int]:
    """Return the members of an object in valid JSON as (value, start, end) by key, and where its closing brace is."""
    decoder = json.JSONDecoder()
    members: dict[str, tuple[Any, int, int]] = {}
    position = _skip_space(text, opening_brace + 1)
    while text[position] != "}":
        key, position = decoder.raw_decode(text, position)
        position = _skip_space(text, _skip_space(text, position) + 1)
        value, end = decoder.raw_decode(text, position)
        members[key] = value, position, end
        position = _skip_space(text, end)
        if text[position] == ",":
            position = _skip_space(text, position + 1)
    return members, position


def _skip_space(text: str, position: int) -> int:
    while text[position] in " \t\n\r":
        position += 1
    return position


def _keys(names: list[str], document: Document, *, location: str) -> tuple[str, str]:
    """Return the keys of source and target; a target's key that is missing is named in the manner of the source's."""
    selection = document.selection
    by_language = find_name(names, [selection.source_language])
    if "source" in names and "target" not in names and selection.source_column is None:
        return "source", "target"
    if by_language is not None and find_name(names, ["target", selection.target_language]) is None:
        if selection.target_language is None:
            raise DataError(f"{location}: the target language is not known. Name it with --to.")
        return names[by_language], selection.target_language
    columns = choose_columns(names, selection, location=location)
    if max(columns.source, columns.target) >= len(names):
        raise DataError(f"{location}: this object has no keys named source and target. Rename its keys to these.")
    return names[columns.source], names[columns.target]
