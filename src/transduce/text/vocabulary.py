"""The list of pieces that a tokenizer knows, and the file that holds it.

    id 0 .. 3        <pad> <unk> <s> </s>
    id 4 .. 19       the symbols reserved for placeholders
    id 20 .. 275     the 256 bytes, for characters without a piece of their own
    id 276 ..        what was learned, best merge first; a piece's rank is its place here

The file is a sentencepiece model, so that any program which reads those can read ours. It is written here, and all but
the learned pieces is fixed: the file that sentencepiece itself would write differs with the number of its threads.
That also makes reading safe. The learned pieces are taken out, checked and written again, and the result must be the
file that was read: nothing else in a stranger's file ever reaches sentencepiece, which aborts on some of them.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import islice

from transduce.errors import ModelError
from transduce.text.normalization import WORD_MARK, can_stand_in_a_word
from transduce.text.placeholders import RESERVED, SYMBOL

PAD, UNK, BOS, EOS = range(4)
FIRST_BYTE = EOS + 1 + len(RESERVED)
FIRST_LEARNED = FIRST_BYTE + 256
LONGEST_PIECE = 16  # characters
LARGEST_VOCABULARY = 1 << 18
LARGEST_FILE = LARGEST_VOCABULARY * (4 * LONGEST_PIECE + 16)  # bytes

_SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 2, 3, 4, 6  # SentencePiece.Type; a normal piece needs no mention
_REMEDY = "Take it from a model directory or run that transduce wrote, or leave it out and let transduce learn one."


def printable_pieces(learned: Iterable[str]) -> list[str]:
    """Return every piece of a vocabulary in the order of its ids, as a reader should see it."""
    numbered = [f"⟨{number}⟩" for number in range(len(RESERVED))]
    return [*_SPECIAL, *numbered, *map(_byte_name, range(256)), *learned]


def write_model(learned: Iterable[str]) -> bytes:
    """Return the sentencepiece model that holds the `learned` pieces."""
    types = {PAD: _CONTROL, UNK: _UNKNOWN, BOS: _CONTROL, EOS: _CONTROL}
    entries = [_entry(piece, 0, types[token]) for token, piece in enumerate(_SPECIAL)]
    entries += [_entry(symbol, 0, _USER_DEFINED) for symbol in RESERVED]
    entries += [_entry(_byte_name(value), 0, _BYTE) for value in range(256)]
    entries += [_entry(piece, -rank) for rank, piece in enumerate(learned)]
    trainer = (
        *(_number(3, 2), _number(4, len(entries)), _number(35, True)),  # model_type = BPE, vocab_size, byte_fallback
        *(_number(40, UNK), _number(41, BOS), _number(42, EOS), _number(43, PAD)),
    )
    normalizer = (
        *(_field(1, b"identity"), _number(3, True)),  # add_dummy_prefix: the first word is cut like every other
        *(_number(4, False), _number(5, True)),  # remove_extra_whitespaces, escape_whitespaces
    )
    return b"".join((*entries, _field(2, b"".join(trainer)), _field(3, b"".join(normalizer))))


def read_model(content: bytes, *, name: str) -> tuple[str, ...]:
    """Return the learned pieces of a model written by `write_model`; `name` is what errors call it."""
    if len(content) > LARGEST_FILE:
        raise ModelError(f"{name} has {len(content):,} bytes; a tokenizer has at most {LARGEST_FILE:,}. {_REMEDY}")
    try:
        pieces = list(islice(_pieces(content), LARGEST_VOCABULARY + 1))
    except (ValueError, IndexError):
        raise ModelError(f"{name} is damaged or is not a tokenizer. {_REMEDY}") from None
    if len(pieces) > LARGEST_VOCABULARY:
        raise ModelError(f"{name} has more pieces than the {LARGEST_VOCABULARY:,} that a tokenizer may have. {_REMEDY}")
    learned = tuple(pieces[FIRST_LEARNED:])
    are_sound = WORD_MARK in learned and len(set(pieces)) == len(pieces) and all(map(_is_sound, learned))
    if not are_sound or write_model(learned) != content:
        raise ModelError(f"{name} is damaged or was made by another program than transduce. {_REMEDY}")
    return learned


def _is_sound(piece: str) -> bool:
    """Tell whether sentencepiece can be handed `piece`, and ordinary text can be cut into it."""
    body = piece.removeprefix(WORD_MARK)
    return piece == WORD_MARK or (
        0 < len(body) <= LONGEST_PIECE and can_stand_in_a_word(body) and not SYMBOL.search(body)
    )


def _pieces(content: bytes) -> Iterator[str]:
    """Read the text of each entry; what else an entry or the file holds is compared later."""
    position = 0
    while position < len(content) and content[position] == 0x0A:
        length, start = _read_varint(content, position + 1)
        position = start + length
        if content[start] != 0x0A or position > len(content):
            raise ValueError
        text_length, text_start = _read_varint(content, start + 1)
        if text_start + text_length > position:
            raise ValueError
        yield content[text_start : text_start + text_length].decode("utf-8")


def _entry(piece: str, score: int, kind: int | None = None) -> bytes:
    body = _field(1, piece.encode("utf-8")) + b"\x15" + struct.pack("<f", score)
    return _field(1, body if kind is None else body + _number(3, kind))


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError


def _byte_name(value: int) -> str:
    return f"<0x{value:02X}>"
