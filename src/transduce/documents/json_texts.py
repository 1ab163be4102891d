"""JSON and JSON Lines. Neither can mark a translation for review.

In a JSON file of texts by key, nested or flat (i18next and others), every string that has words is translated in place;
keys, their order, numbers and layout stay. If the keys themselves are text and some values are empty, the file is a
catalogue: the empty values are filled in from their keys, the others are kept. JSON Lines has a source and a target in
each object; empty or missing targets are filled in.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from transduce.data.formats.columns import choose_columns, find_name
from transduce.data.formats.json_lines import NESTED_KEY
from transduce.documents.document import TRANSLATED, Document, Gap, Splice
from transduce.documents.marked_gap import marked_gap
from transduce.documents.marked_text import Part
from transduce.documents.messages import message_parts, untranslatable
from transduce.errors import DataError

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"([ \t\r\n]*+:)?')


class _JsonValue(NamedTuple):
    """A string value, its key (in a list, the key of the list) and its offsets, with the quotes."""

    key: str
    text: str
    start: int
    end: int


def json_gaps(document: Document) -> Iterator[Gap]:
    """Yield every string that has words, or in a catalogue every string whose key has words."""
    values = list(_string_values(document))
    is_catalogue = any(not value.text and " " in value.key for value in values)
    ascii_only = document.content.isascii() and b"\\u" in document.content
    for value in values:
        text = value.key if is_catalogue else value.text
        location = document.location(value.start)
        if is_catalogue and value.text and not document.overwrites:
            yield Gap(location, skip_reason=TRANSLATED)
            continue
        if reason := untranslatable(text):
            yield Gap(location, skip_reason=reason)
            continue

        def write(parts: list[Part], place: tuple[int, int] = (value.start, value.end)) -> list[Splice]:
            text = "".join(part if isinstance(part, str) else part.raw for part in parts)
            return [Splice(*place, json.dumps(text, ensure_ascii=ascii_only))]

        if gap := marked_gap(location, message_parts(text), write):
            yield gap


def _string_values(document: Document) -> Iterator[_JsonValue]:
    """Yield the strings of a JSON file that are not keys; DataError with line and column if it is not valid JSON."""
    try:
        json.loads(document.content)
    except json.JSONDecodeError as fault:
        raise DataError(
            f"{document.path}:{fault.lineno}:{fault.colno}: the file is not valid JSON here ({fault.msg}). Fix it."
        ) from None
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{document.path}:1:1: the file cannot be read as JSON ({fault}). Fix it.") from None
    key = ""
    for match in _STRING.finditer(document.content):
        if match[1] is not None:
            key = json.loads(match[0][: -len(match[1])])
        else:
            yield _JsonValue(key, json.loads(match[0]), match.start(), match.end())


def json_lines_gaps(document: Document) -> Iterator[Gap]:
    """Yield a gap for every object that has a source."""
    keys: tuple[str, str] | None = None
    for number, (start, line) in enumerate(document.lines(), start=1):
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


def _members(text: str, *, location: str) -> tuple[dict[str, tuple[Any, int, int]], int]:
    """Return `_scan_object` of the object on a line, or of the object inside it that holds the translation."""
    try:
        is_object = isinstance(json.loads(text), dict)
        members, closing_brace = _scan_object(text, text.index("{"))
    except json.JSONDecodeError as fault:
        raise DataError(f"{location}:{fault.colno}: this line is not a JSON object ({fault.msg}). Fix it.") from None
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
    """Return the keys of source and target; a missing target key is named like the source key (role or language)."""
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
