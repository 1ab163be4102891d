"""JSON Lines: one object per line, its keys the columns.

{"source": "Guten Tag.", "target": "Good day."}
{"de": "Guten Tag.", "en": "Good day."}
{"translation": {"de": "Guten Tag.", "en": "Good day."}}
"""

import json
from collections.abc import Iterator
from typing import Any

from transduce.data.formats.columns import choose_columns, shown
from transduce.data.formats.corpus_file import CorpusFile
from transduce.data.formats.pair import Pair, Selection
from transduce.errors import DataError

_INNER = "translation"


def read_json_lines(file: CorpusFile, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of a file of JSON objects. Which keys are the pair is settled by the first object."""
    keys: tuple[str, str] | None = None
    for number, line in enumerate(file.lines(), start=1):
        if not line.strip():
            yield Pair("", "", number)
            continue
        where = f"{file.path}:{number}"
        record = _record(line, where=where)
        keys = keys or _keys(record, selection, where=where)
        yield Pair(_text(record, keys[0], where=where), _text(record, keys[1], where=where), number)


def _record(line: str, *, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise DataError(f"{where}: this line is no JSON ({fault}). Every line must hold one whole object.") from fault
    inner = record.get(_INNER) if isinstance(record, dict) else None
    record = inner if isinstance(inner, dict) else record
    if not isinstance(record, dict):
        raise DataError(f'{where}: this line is no JSON object. Write {{"source": "…", "target": "…"}} on every line.')
    return record


def _keys(record: dict[str, Any], selection: Selection, *, where: str) -> tuple[str, str]:
    names = list(record)
    columns = choose_columns(names, selection, where=where)
    if max(columns.source, columns.target) >= len(names):
        raise DataError(
            f"{where}: a pair needs two keys, and this object has {shown(names) or 'none'}. "
            "Set data.source_column and data.target_column to keys that it has."
        )
    return names[columns.source], names[columns.target]


def _text(record: dict[str, Any], key: str, *, where: str) -> str:
    if key not in record:
        raise DataError(f"{where}: this object has no key {key!r}; it has {shown(list(record))}. Mend the line.")
    value = record[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: {key!r} must be a string, and here it is {json.dumps(value)[:40]}.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise DataError(f"{where}: {key!r} holds half of a surrogate pair, which is no character. Mend the line.")
    return value
