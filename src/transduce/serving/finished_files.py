"""Translated files until they are fetched: in memory, under names that cannot be guessed, for a while.

Nothing is written to a disk, and a name from a request is looked up and never opened.
"""

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass

_SECONDS_KEPT = 1800.0
_MOST_BYTES = 64 << 20
_SECRET_BYTES = 24


@dataclass(frozen=True)
class FinishedFile:
    """A translated file."""

    content: bytes
    shown_name: str
    """What a browser saves it as."""
    expires: float


class FinishedFiles:
    """The newest of them; where they would take too much, or too long, the oldest go."""

    def __init__(self, *, seconds: float = _SECONDS_KEPT, most_bytes: int = _MOST_BYTES) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._files: OrderedDict[str, FinishedFile] = OrderedDict()

    def add(self, content: bytes, *, shown_name: str) -> str:
        """Keep a file and return the name under which it can be fetched."""
        self._drop_old()
        name = f"{secrets.token_urlsafe(_SECRET_BYTES)}.{shown_name}"
        self._files[name] = FinishedFile(content, shown_name, time.monotonic() + self._seconds)
        while sum(len(file.content) for file in self._files.values()) > self._most_bytes:
            self._files.popitem(last=False)
        return name

    def get(self, name: str) -> FinishedFile | None:
        """Return a file that is still there."""
        self._drop_old()
        return self._files.get(name)

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._files and next(iter(self._files.values())).expires <= now:
            self._files.popitem(last=False)
