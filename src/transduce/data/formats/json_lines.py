"""JSON Lines: one object per line, in one of three forms.

{"source": "Guten Tag.", "target": "Good day."}
{"de": "Guten Tag.", "en": "Good day."}
{"translation": {"de": "Guten Tag.", "en": "Good day."}}
"""

import json
from collections.abc import Iterator
from typing import Any

from transduce.data.formats.columns import choose_columns, quoted_names
from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.pair import Pair, Selection
from transduce.errors import DataError

NESTED_KEY = "translation"


def read_json_lines(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of a file of JSON objects. The first object decides which keys are the pair."""
    keys: tuple[str, str] | None = None
    for number, line in enumerate(file.lines(), start=1):
        if not line.strip():
            yield Pair("", "", number)
            continue
        location = f"{file.path}:{number}"
        record = _record(line, location=location)
        keys = keys or _keys(record, selection, location=location)
        yield Pair(_text(record, keys[0], location=location), _text(record, keys[1], location=location), number)


def _record(line: str, *, location: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as fault:
        column = f":{fault.colno}" if isinstance(fault, json.JSONDecodeError) else ""
        raise DataError(
            f"{location}{column}: this line is not JSON ({fault}). Every line must hold one whole object."
        ) from fault
    nested = record.get(NESTED_KEY) if isinstance(record, dict) else None
    record = nested if isinstance(nested, dict) else record
    if not isinstance(record, dict):
        raise DataError(
            f'{location}: this line is not a JSON object. Write {{"source": "…", "target": "…"}} on every line.'
        )
    return record


def _keys(record: dict[str, Any], selection: Selection, *, location: str) -> tuple[str, str]:
    names = list(record)
    columns = choose_columns(names, selection, location=location)
    if max(columns.source, columns.target) >= len(names):
        raise DataError(
            f"{location}: a pair needs two keys, but this object has {quoted_names(names) or 'none'}. "
            "Set data.source_column and data.target_column to keys of this object."
        )
    return names[columns.source], names[columns.target]


def _text(record: dict[str, Any], key: str, *, location: str) -> str:
    if key not in record:
        raise DataError(
            f"{location}: this object has no key {key!r}; it has {quoted_names(list(record))}. Fix the line."
        )
    value = record[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{location}: {key!r} must be a string, but it is {json.dumps(value)[:40]}.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise DataError(f"{location}: {key!r} holds half of a surrogate pair, which is not a character. Fix the line.")
    return value
