"""Files as an attacker or a bad disk would send them: bytes changed, cut, repeated; values of JSON made worse."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Mutator = Callable[[bytes, random.Random], bytes]

INTERESTING = (
    *(b"\x00", b"\xff", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x80", b"\n", b"\r\n", b"\t", b'"', b"\\", b"{", b"]"),
    *(b"<", b">", b"&", b"&amp;", b"<!ENTITY a 'b'>", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"%s", b"-1"),
    *(b"1e999", b"NaN", b"99999999999999999999", b"../../etc/passwd", b"\\ud800", "é".encode(), "\u2581".encode()),
)
WORSE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**30, -(2**63), 0.0, -0.5, 1e308, float("inf")),
    *(float("nan"), "", "x", "../../../../etc/passwd", "\x00", "x" * 5_000, [], {}, [[]], {"": None}, [0] * 1_000),
    "__import__('os').system('true')",
)


def bytewise(content: bytes, chance: random.Random) -> bytes:
    """Return the content with one to four of its places damaged."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = _damaged(data, chance)
    return bytes(data)


def _damaged(data: bytearray, chance: random.Random) -> bytearray:
    place = chance.randrange(len(data) + 1)
    if place < len(data) and (kind := chance.randrange(9)) < 3:
        if kind == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[place] = chance.randrange(256)
        else:
            data[place : place + chance.randint(1, 8)] = b""
        return data
    match chance.randrange(6):
        case 0:
            return data[:place]
        case 1:
            data[place:place] = chance.choice(INTERESTING)
        case 2:
            length = chance.randint(1, max(1, min(64, len(data))))
            data[place:place] = data[place - length : place] * chance.choice((1, 2, 50))
        case 3:
            data[place : place + 8] = chance.randrange(1 << 64).to_bytes(8, "little")
        case 4:
            other = chance.randrange(len(data) + 1)
            low, high = sorted((place, other))
            data[low:high] = data[low:high][::-1]
        case _:
            data[place:place] = bytes(chance.randrange(1, 64))
    return data


def structural(content: bytes, chance: random.Random) -> bytes:
    """Return JSON with some of its values replaced, removed, renamed or nested."""
    value = json.loads(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        value = _worse(value, chance)
    if chance.random() < 0.02:
        return b"[" * chance.choice((100, 100_000)) + json.dumps(value).encode()
    return json.dumps(value).encode()


def _worse(value: Any, chance: random.Random) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        match chance.randrange(6):
            case 0:
                del value[key]
            case 1:
                name = chance.choice(("", "x" * 300, key.upper(), f"{key}.scale", "__metadata__", "../x"))
                value[name] = copy.deepcopy(value[key])
            case _:
                value[key] = _worse(value[key], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.7:
        place = chance.randrange(len(value))
        value[place] = _worse(value[place], chance)
        return value + copy.deepcopy(value) if chance.random() < 0.3 else value
    if isinstance(value, int) and not isinstance(value, bool) and chance.random() < 0.5:
        return chance.choice((value + 1, value - 1, -value, value * 2, value << 32, str(value), float(value), [value]))
    return copy.deepcopy(chance.choice(WORSE))


def header_of_tensors(content: bytes, chance: random.Random) -> bytes:
    """Return a safetensors file with its header mutated: its length, its JSON, or what stands behind it."""
    length = int.from_bytes(content[:8], "little")
    header, body = content[8 : 8 + length], content[8 + length :]
    match chance.randrange(6):
        case 0:
            claimed = chance.choice((0, 1, length - 1, length + 1, len(content), 1 << 24, 1 << 40, (1 << 64) - 1))
            return claimed.to_bytes(8, "little") + header + body
        case 1:
            header = bytewise(header, chance)
        case 2:
            body = bytewise(body, chance)
        case _:
            header = structural(header, chance)
    claimed = len(header) if chance.random() < 0.9 else length
    return claimed.to_bytes(8, "little") + header + body


def protobuf(content: bytes, chance: random.Random) -> bytes:
    """Return a protocol buffer with one of its fields repeated, removed, resized or filled with something else."""
    fields = list(_fields(content))
    if not fields:
        return bytewise(content, chance)
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(fields))
        match chance.randrange(6):
            case 0:
                del fields[place]
            case 1:
                fields[place:place] = [fields[place]] * chance.choice((1, 2, 1_000))
            case 2:
                fields[place] = bytewise(fields[place], chance)
            case 3:
                other = chance.randrange(len(fields))
                fields[place], fields[other] = fields[other], fields[place]
            case 4:
                fields[place] = fields[place][:1] + b"\xff\xff\xff\xff\x7f" + fields[place][2:]
            case _:
                fields.append(bytes([chance.randrange(256)]) + chance.randbytes(chance.randrange(20)))
        if not fields:
            break
    return b"".join(fields)


def _fields(content: bytes) -> Iterator[bytes]:
    """Yield the top-level fields of a message, each with its tag, as far as it can be read."""
    start = 0
    while start < len(content):
        _, place = _varint(content, start)
        kind = content[start] & 7
        if kind == 2:
            length, place = _varint(content, place)
            place += length
        elif kind == 0:
            _, place = _varint(content, place)
        else:
            place += {1: 8, 5: 4}.get(kind, len(content))
        yield content[start:place]
        start = place


def _varint(content: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while place < len(content):
        byte = content[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            break
    return number, place
