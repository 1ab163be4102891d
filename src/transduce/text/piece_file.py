"""sentencepiece models that other programs wrote, read without sentencepiece, which aborts on some damaged files.

The file is a protobuf message. Every length is checked against the bytes that are left before it is used, and an option
that `piece_cutting.py` does not implement is refused by its name. `sentencepiece_file.py` reads our own models.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from transduce.errors import ModelError
from transduce.text.normalization import WORD_MARK
from transduce.text.vocabulary import LARGEST_VOCABULARY

LARGEST_FILE = 8 << 20  # the largest known has 5 MB
LONGEST_PIECE = 128  # characters
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_METHODS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}

Value = int | bytes


@dataclass(frozen=True)
class PieceFile:
    """The content of a sentencepiece model that matters for cutting text."""

    method: str
    """`unigram` or `bpe`."""
    names: tuple[str, ...]
    """The text of each piece by its id in the file."""
    scores: dict[str, float]
    """The score of each piece that text can contain; its user-defined symbols are among them."""
    lowest_score: float
    symbols: tuple[str, ...]
    """The user-defined symbols, which are never cut or normalised."""
    control: frozenset[str]
    """The pieces that stand for no text, `<unk>` among them."""
    has_bytes: bool
    """Whether characters without a piece are spelled in bytes."""
    characters_map: bytes
    adds_prefix: bool
    """Whether a space is added in front of a text."""
    removes_spaces: bool
    """Whether spaces at the ends are removed, and repeated ones become one."""


def read_piece_file(content: bytes, *, name: str) -> PieceFile:
    """Return the model; raise ModelError, naming `name`, for a damaged one or one with options that are not ours."""
    if len(content) > LARGEST_FILE:
        raise ModelError(f"{name} has {len(content):,} bytes; a sentencepiece model has at most {LARGEST_FILE:,}.")
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, Value] = {}
    normalizer: dict[int, Value] = {}
    try:
        for field, value in _fields(content):
            if field == 1:
                pieces.append(_piece(_is_bytes(value)))
            elif field in (2, 3):
                (trainer if field == 2 else normalizer).update(_fields(_is_bytes(value)))
            elif field == 5 and dict(_fields(_is_bytes(value))).get(2):
                raise ModelError(f"{name} has a denormalizer_spec, which transduce does not implement.")
            if len(pieces) > LARGEST_VOCABULARY:
                raise ValueError
    except (ValueError, IndexError, struct.error):
        raise ModelError(f"{name} is damaged or is not a sentencepiece model.") from None
    return _model(pieces, trainer, normalizer, name)


def _model(
    pieces: list[tuple[str, float, int]], trainer: dict[int, Value], normalizer: dict[int, Value], name: str
) -> PieceFile:
    method = _METHODS.get(_is_number(trainer.get(3, 1)), "?")
    kinds = {kind for _, _, kind in pieces}
    refused = {
        f"model_type = {method}": method not in ("unigram", "bpe"),
        "treat_whitespace_as_suffix": bool(trainer.get(24)),
        "escape_whitespaces = false": not normalizer.get(5, 1),
        "UNUSED pieces": _UNUSED in kinds and method == "bpe",
        "symbols that contain spaces": any(
            kind == _USER_DEFINED and (WORD_MARK in text or " " in text) for text, _, kind in pieces
        ),
    }
    for option, is_found in refused.items():
        if is_found:
            raise ModelError(f"{name} has {option}, which transduce does not implement.")
    is_sound = len({text for text, _, _ in pieces}) == len(pieces) and _UNKNOWN in kinds and _NORMAL in kinds
    if not is_sound or any(not 0 < len(text) <= LONGEST_PIECE for text, _, _ in pieces):
        raise ModelError(f"{name} is damaged: a piece is empty, too long or there twice, or there is no unknown piece.")
    normal = [score for _, score, kind in pieces if kind == _NORMAL]
    return PieceFile(
        method=method,
        names=tuple(text for text, _, _ in pieces),
        scores={
            text: score if kind == _NORMAL else len(text.encode()) * max(0.0, *normal) - 0.1  # as in sentencepiece
            for text, score, kind in pieces
            if kind in (_NORMAL, _USER_DEFINED)
        },
        lowest_score=min(normal),
        symbols=tuple(text for text, _, kind in pieces if kind == _USER_DEFINED),
        control=frozenset(text for text, _, kind in pieces if kind in (_UNKNOWN, _CONTROL)),
        has_bytes=bool(trainer.get(35)) and _BYTE in kinds,
        characters_map=_is_bytes(normalizer.get(2, b"")),
        adds_prefix=bool(normalizer.get(3, 1)),
        removes_spaces=bool(normalizer.get(4, 1)),
    )


def _piece(content: bytes) -> tuple[str, float, int]:
    fields = dict(_fields(content))
    score = struct.unpack("<f", _is_bytes(fields.get(2, b"\0\0\0\0")))[0]
    if not abs(score) < 1e9:  # written so that NaN is refused
        raise ValueError
    return _is_bytes(fields.get(1, b"")).decode("utf-8"), score, _is_number(fields.get(3, _NORMAL))


def _fields(content: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and the value of each field of a message; numbers of fixed size are bytes."""
    position = 0
    while position < len(content):
        key, position = read_varint(content, position)
        if key & 7 == _VARINT:
            value, position = read_varint(content, position)
            yield key >> 3, value
            continue
        if key & 7 == _BYTES:
            length, position = read_varint(content, position)
        else:
            length = {_FIXED_32: 4, _FIXED_64: 8}.get(key & 7, len(content))
        if length > len(content) - position:
            raise ValueError
        yield key >> 3, content[position : position + length]
        position += length


def read_varint(content: bytes, position: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it; ValueError or IndexError if it does not end."""
    value = 0
    for shift in range(0, 70, 7):
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError


def _is_bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise ValueError
    return value


def _is_number(value: Value) -> int:
    if not isinstance(value, int):
        raise ValueError
    return value
