"""Translated files that wait for download: kept in memory for half an hour under names that cannot be guessed.

Nothing is written to disk, and the name in a request is looked up in a dictionary, never opened as a path.
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
    """The name that a browser saves it under."""
    expires: float


class FinishedFiles:
    """Translated files in memory, each deleted after `seconds`; the oldest also if the total exceeds `most_bytes`."""

    def __init__(self, *, seconds: float = _SECONDS_KEPT, most_bytes: int = _MOST_BYTES) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._files: OrderedDict[str, FinishedFile] = OrderedDict()

    def add(self, content: bytes, *, shown_name: str) -> str:
        """Store a file and return its secret name."""
        self._drop_old()
        name = f"{secrets.token_urlsafe(_SECRET_BYTES)}.{shown_name}"
        self._files[name] = FinishedFile(content, shown_name, time.monotonic() + self._seconds)
        while sum(len(file.content) for file in self._files.values()) > self._most_bytes:
            self._files.popitem(last=False)
        return name

    def get(self, name: str) -> FinishedFile | None:
        """Return a file, or None if there is no such file any more."""
        self._drop_old()
        return self._files.get(name)

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._files and next(iter(self._files.values())).expires <= now:
            self._files.popitem(last=False)
