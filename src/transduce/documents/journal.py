"""The journal of a document being filled in: translations on disk, so that interrupted work can be resumed.

The first line is a header that identifies the document, the model and the settings; every further line is the entry of
one text. A journal with another header is refused. A last line that a killed process wrote only in part is dropped.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from transduce.errors import RunError


@dataclass(frozen=True)
class JournalEntry:
    """The translation of one text, or the reason why there is none."""

    translation: str
    fault: str = ""
    note: str = ""
    """What got lost in a translation that is filled in all the same."""
    confidence: float | None = None


class Journal:
    """The entries of a document's texts, in order."""

    def __init__(self, file: BinaryIO, header: str, *, name: str) -> None:
        """Start a journal in an empty file, or continue the one in it; RunError if that has another header."""
        self._file = file
        self._first = len(header.encode()) + 1
        self.count = 0
        file.seek(0)
        first = file.readline()
        if not first.endswith(b"\n"):
            file.seek(0)
            file.truncate()
            file.write(header.encode() + b"\n")
        elif first != header.encode() + b"\n":
            raise RunError(
                f"{name} belongs to another document, model or setting. Finish that work with the command that started "
                "it, or delete the file to start over."
            )
        else:
            self._count_whole_lines()
        file.flush()

    def append(self, entries: list[JournalEntry]) -> None:
        """Add entries and hand them to the operating system, where they survive the end of this process."""
        self._file.write(b"".join(json.dumps(asdict(entry)).encode() + b"\n" for entry in entries))
        self._file.flush()
        self.count += len(entries)

    def __iter__(self) -> Iterator[JournalEntry]:
        self._file.seek(self._first)
        for _ in range(self.count):
            yield JournalEntry(**json.loads(self._file.readline()))
        self._file.seek(0, 2)

    def _count_whole_lines(self) -> None:
        end = self._first
        for line in self._file:
            if not line.endswith(b"\n") or not _is_entry(line):
                break
            self.count += 1
            end += len(line)
        self._file.seek(end)
        self._file.truncate()


def journal_beside(output: Path) -> Path:
    """Return the path of the journal for a document that is filled into `output`."""
    return output.with_name(f"{output.name}.partial")


def _is_entry(line: bytes) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and value.keys() == JournalEntry.__annotations__.keys()
