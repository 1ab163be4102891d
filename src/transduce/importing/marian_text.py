"""The part of YAML that Marian writes: options, and vocabularies as a mapping from pieces to ids.

key: value        key:            "quoted": 7        ? a long piece
                    - value                          : 8
"""

import json
import re

from transduce.errors import ModelError
from transduce.text.vocabulary import LARGEST_VOCABULARY

_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_LETTERS |= {"_": "\u00a0", "N": "\u0085", "L": "\u2028", "P": "\u2029"}

Options = dict[str, str | list[str]]


def options_of(text: str) -> Options:
    """Return the options of a text by name; a value is a text or a list of texts."""
    found: Options = {}
    key = ""
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        own = found.get(key)
        if stripped.startswith("- ") and isinstance(own, list):
            own.append(_scalar(stripped[2:]))
        elif stripped.startswith("[") and line[0] == " " and key:
            found[key] = _inline(stripped)
        elif not line[0].isspace() and ":" in line:
            key, _, value = (part.strip() for part in line.partition(":"))
            found[key] = [] if not value else _inline(value) if value.startswith("[") else _scalar(value)
    return found


def pieces_to_ids(content: bytes, *, name: str, is_plain: bool = False) -> dict[str, int]:
    """Return the id of each piece of a vocabulary: YAML, JSON, or plain with a piece on each line.

    Raise ModelError, naming `name`, if it is damaged.
    """
    try:
        text = content.decode("utf-8")
        if is_plain:
            return {piece.rstrip("\r"): token for token, piece in enumerate(text.removesuffix("\n").split("\n"))}
        if text.lstrip().startswith("{"):
            read = json.loads(text)
            return {str(piece): token for piece, token in read.items() if type(token) is int}
        return _mapping(text.split("\n"))
    except (ValueError, OverflowError, RecursionError):
        raise ModelError(f"{name} is damaged: it is not a vocabulary of Marian.") from None


def _mapping(lines: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    long_piece: str | None = None
    for line in lines:
        if line.startswith("? "):
            long_piece = _scalar(line[2:].strip(" \r"))
        elif long_piece is not None and line.startswith(": "):
            found[long_piece], long_piece = int(line[2:]), None
        elif line.strip() and not line.startswith(("#", "---")):
            piece, colon, token = line.rpartition(":")
            if not colon or len(token) > 12:
                raise ValueError
            found[_scalar(piece.strip(" \r"))] = int(token)
        if len(found) > LARGEST_VOCABULARY:
            raise ValueError
    return found


def _inline(value: str) -> list[str]:
    return [_scalar(part.strip()) for part in value.strip("[] ").split(",") if part.strip()]


def _scalar(value: str) -> str:
    """Return a text without its quotes."""
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return _ESCAPE.sub(lambda match: _unescaped(match[1]), value[1:-1])
    return value


def _unescaped(code: str) -> str:
    return chr(int(code[1:], 16)) if len(code) > 1 else _LETTERS.get(code, code)
