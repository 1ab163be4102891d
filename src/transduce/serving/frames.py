"""The messages between server and child: a JSON object after its length in four bytes, over pipes.

The format is JSON and not pickle, so that neither process can make the other run code. A frame is ASCII: a lone
surrogate in a text is sent as an escape.
"""

import asyncio
import json
from typing import Any, BinaryIO

_MOST_BYTES = 256 << 20
_PREFIX = 4


def encode_frame(message: dict[str, Any]) -> bytes:
    """Return a message as a frame."""
    content = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    assert len(content) <= _MOST_BYTES, "the limits on requests keep frames small"
    return len(content).to_bytes(_PREFIX, "big") + content


def write_frame(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write a message and flush it."""
    stream.write(encode_frame(message))
    stream.flush()


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the next message, or None if the stream has ended, even in the middle of a frame."""
    prefix = stream.read(_PREFIX)
    if len(prefix) < _PREFIX:
        return None
    length = _length(prefix)
    content = stream.read(length)
    return _message(content) if len(content) == length else None


async def receive_frame(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next message of an asynchronous stream, or None, as `read_frame` does."""
    try:
        return _message(await stream.readexactly(_length(await stream.readexactly(_PREFIX))))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _length(prefix: bytes) -> int:
    length = int.from_bytes(prefix, "big")
    if length > _MOST_BYTES:
        raise ValueError(f"a frame of {length:,} bytes is longer than the protocol allows")
    return length


def _message(content: bytes) -> dict[str, Any]:
    message = json.loads(content)
    if not isinstance(message, dict):
        raise ValueError("a frame must hold one JSON object")
    return message
