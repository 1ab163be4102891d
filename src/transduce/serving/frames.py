"""What passes between the server and its child: JSON, preceded by its length in four bytes, over pipes.

JSON and not pickle, so that neither process can make the other run code. A frame is ASCII: a lone surrogate in a text
survives as its escape.
"""

import asyncio
import json
from typing import Any, BinaryIO

LONGEST = 256 << 20
_PREFIX = 4


def encode_frame(message: dict[str, Any]) -> bytes:
    """Return a message as a frame."""
    content = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    assert len(content) <= LONGEST, "limits on requests keep frames small"
    return len(content).to_bytes(_PREFIX, "big") + content


def write_frame(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write a message and flush it."""
    stream.write(encode_frame(message))
    stream.flush()


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next message, or None where the other end has closed, be it in the middle of a frame."""
    prefix = stream.read(_PREFIX)
    if len(prefix) < _PREFIX:
        return None
    length = _length(prefix)
    content = stream.read(length)
    return _message(content) if len(content) == length else None


async def receive_frame(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next message, or None where the other end has closed, be it in the middle of a frame."""
    try:
        return _message(await stream.readexactly(_length(await stream.readexactly(_PREFIX))))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _length(prefix: bytes) -> int:
    length = int.from_bytes(prefix, "big")
    if length > LONGEST:
        raise ValueError(f"a frame of {length:,} bytes is longer than the protocol allows")
    return length


def _message(content: bytes) -> dict[str, Any]:
    message = json.loads(content)
    if not isinstance(message, dict):
        raise ValueError("a frame holds one JSON object")
    return message
