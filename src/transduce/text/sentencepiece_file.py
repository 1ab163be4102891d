"""The file of a byte-pair vocabulary: a sentencepiece model, so that other programs can read it.

`vocabulary.py` gives the ids. The learned pieces are in order of their rank, the best merge first.

We write the file ourselves, because the file that sentencepiece writes depends on its number of threads. Everything in
our file except the learned pieces is fixed, which also makes reading safe: `read_model` extracts the learned pieces,
checks them and writes them again, and the result must equal the file that was read. So sentencepiece, which aborts on
some files, never parses an untrusted file.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import islice

from transduce.errors import ModelError
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.text.normalization import WORD_MARK, can_stand_in_a_word
from transduce.text.piece_file import read_varint
from transduce.text.placeholders import RESERVED, SYMBOL
from transduce.text.vocabulary import FIRST_LEARNED, LARGEST_VOCABULARY, REMEDY, SPECIAL_PIECES, byte_name, is_tag

LONGEST_PIECE = 16  # characters
LARGEST_FILE = LARGEST_VOCABULARY * (4 * LONGEST_PIECE + 16)  # bytes

_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 2, 3, 4, 6  # SentencePiece.Type; a normal piece has no such field
_SCORE = struct.Struct("<f")


def write_model(learned: Iterable[str]) -> bytes:
    """Return the sentencepiece model that holds the `learned` pieces."""
    special = OWN_SPECIAL_TOKENS
    entries = [
        _entry(piece, 0, _UNKNOWN if token == special.unknown else _CONTROL)
        for token, piece in enumerate(SPECIAL_PIECES)
    ]
    entries += [_entry(symbol, 0, _USER_DEFINED) for symbol in RESERVED]
    entries += [_entry(byte_name(value), 0, _BYTE) for value in range(256)]
    entries += [_entry(piece, -rank, _USER_DEFINED if is_tag(piece) else None) for rank, piece in enumerate(learned)]
    trainer = (
        *(_number(3, 2), _number(4, len(entries)), _number(35, True)),  # model_type = BPE, vocab_size, byte_fallback
        *(_number(40, special.unknown), _number(41, special.start)),
        *(_number(42, special.end), _number(43, special.padding)),
    )
    normalizer = (
        *(_field(1, b"identity"), _number(3, True)),  # add_dummy_prefix: the first word is cut like every other
        *(_number(4, False), _number(5, True)),  # remove_extra_whitespaces, escape_whitespaces
    )
    return b"".join((*entries, _field(2, b"".join(trainer)), _field(3, b"".join(normalizer))))


def read_model(content: bytes, *, name: str) -> tuple[str, ...]:
    """Return the learned pieces of a model written by `write_model`; error messages call the model `name`."""
    if len(content) > LARGEST_FILE:
        raise ModelError(f"{name} has {len(content):,} bytes; a tokenizer has at most {LARGEST_FILE:,}. {REMEDY}")
    try:
        pieces = list(islice(_pieces(content), LARGEST_VOCABULARY + 1))
    except (ValueError, IndexError):
        raise ModelError(f"{name} is damaged or is not a tokenizer. {REMEDY}") from None
    if len(pieces) > LARGEST_VOCABULARY:
        raise ModelError(f"{name} has more pieces than the {LARGEST_VOCABULARY:,} that a tokenizer may have. {REMEDY}")
    learned = tuple(pieces[FIRST_LEARNED:])
    are_sound = WORD_MARK in learned and len(set(pieces)) == len(pieces) and _are_sound(learned)
    if not are_sound or write_model(learned) != content:
        raise ModelError(f"{name} is damaged or was not written by transduce. {REMEDY}")
    return learned


def _are_sound(learned: tuple[str, ...]) -> bool:
    """Return whether the pieces are safe for sentencepiece and can occur in ordinary text."""
    bodies = [piece.removeprefix(WORD_MARK) for piece in learned if piece != WORD_MARK]
    characters = "".join(bodies)
    return (
        all(0 < len(body) <= LONGEST_PIECE for body in bodies)
        and can_stand_in_a_word(characters)
        and not SYMBOL.search(characters)
    )


def _pieces(content: bytes) -> Iterator[str]:
    """Yield the text of each entry; `read_model` checks the rest of the file."""
    position = 0
    while position < len(content) and content[position] == 0x0A:
        length, start = read_varint(content, position + 1)
        position = start + length
        if content[start] != 0x0A or position > len(content):
            raise ValueError
        text_length, text_start = read_varint(content, start + 1)
        if text_start + text_length > position:
            raise ValueError
        yield content[text_start : text_start + text_length].decode("utf-8")


def _entry(piece: str, score: int, kind: int | None = None) -> bytes:
    body = _field(1, piece.encode("utf-8")) + b"\x15" + _SCORE.pack(score)
    return _field(1, body if kind is None else body + _number(3, kind))


def _field(number: int, payload: bytes) -> bytes:
    if number < 16 and len(payload) < 128:  # the fast way for pieces: reading a tokenizer writes each of them again
        return b"%c%c%b" % (number << 3 | 2, len(payload), payload)
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    if value <= 0x7F:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
