r"""Java .properties files: translate the values in place. Keys, comments, separators and untouched values stay.

A value with arguments ({0}) is a MessageFormat, in which an apostrophe is written twice. A file in ASCII is written in
ASCII with \u escapes, which every version of Java reads; a file in UTF-8 or Latin-1 keeps its encoding.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from transduce.documents.document import Document, Gap, Splice
from transduce.documents.marked_gap import marked_gap
from transduce.documents.marked_text import Part
from transduce.documents.messages import joined_surrogates, message_parts, untranslatable

QUOTED = "it quotes a part of its MessageFormat with apostrophes"
_LINE = re.compile(rb"[^\r\n]*+")
_KEY = re.compile(rb"[ \t\f]*+(?:[^\\ \t\f:=\r\n]++|\\(?:\r\n|[^\r\n]|[\r\n]))*+[ \t\f]*+[:=]?[ \t\f]*+")
_VALUE = re.compile(rb"(?:[^\\\r\n]++|\\(?:\r\n|.|\Z))*+", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(?:\r\n|[\r\n])[ \t\f]*+|(.)|$)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ARGUMENT = re.compile(r"\{\d")


def properties_encoding(content: bytes, *, path: Path) -> str:
    """Return UTF-8 if the file is valid UTF-8, else Latin-1, which Java read before version 9."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "iso-8859-1"
    return "utf-8"


def properties_gaps(document: Document) -> Iterator[Gap]:
    """Yield the value of every property that has words."""
    content, position = document.content, 0
    encoding = "ascii" if content.isascii() else document.encoding
    while position < len(content):
        lead = content[position : position + 1]
        if lead in b" \t\f\r\n":
            position += 1
        elif lead in b"#!":
            position = _end(_LINE, content, position)
        else:
            start = _end(_KEY, content, position)
            position = _end(_VALUE, content, start)
            if gap := _gap_of_value(document, start, position, encoding=encoding):
                yield gap


def _end(pattern: re.Pattern[bytes], content: bytes, position: int) -> int:
    found = pattern.match(content, position)
    return found.end() if found else position


def _gap_of_value(document: Document, start: int, end: int, *, encoding: str) -> Gap | None:
    raw = document.text(start, end)
    text = joined_surrogates(_ESCAPE.sub(lambda match: _unescaped(document, start, raw, match), raw))
    location = document.location(start)
    is_format = bool(_ARGUMENT.search(text))
    if reason := untranslatable(text):
        return Gap(location, skip_reason=reason)
    if is_format and "'" in text.replace("''", ""):
        return Gap(location, skip_reason=QUOTED)

    def write(parts: list[Part]) -> list[Splice]:
        words = [part.replace("'", "''") if is_format and isinstance(part, str) else part for part in parts]
        text = "".join(word if isinstance(word, str) else word.raw for word in words)
        return [Splice(start, end, _escaped(text, encoding))]

    return marked_gap(location, message_parts(text.replace("''", "'") if is_format else text), write)


def _unescaped(document: Document, start: int, raw: str, match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2] == "u":
        offset = start + len(raw[: match.start()].encode("utf-8"))
        raise document.fault(offset, r"\u needs four hexadecimal digits after it. Fix the escape.")
    return _CONTROL.get(match[2], match[2]) if match[2] else ""


def _escaped(text: str, encoding: str) -> str:
    escaped = text.replace("\\", "\\\\").translate({ord(char): f"\\{name}" for name, char in _CONTROL.items()})
    if escaped.startswith(" "):
        escaped = "\\" + escaped
    return "".join(char if _is_encodable(char, encoding) else _unicode_escapes(char) for char in escaped)


def _is_encodable(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _unicode_escapes(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
