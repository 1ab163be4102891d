"""What has been translated so far, on disk, so that interrupted work goes on where it stopped.

The first line says what the translations are of and how they were made; every further line is one text's. A journal of
another document, model or setting is not continued, and a last line that a kill cut short is dropped.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from transduce.errors import RunError


@dataclass(frozen=True)
class Outcome:
    """What became of one text: its translation, or why there is none."""

    translation: str
    fault: str = ""


class Journal:
    """The outcomes of a document's texts, in order."""

    def __init__(self, file: BinaryIO, header: str, *, name: str) -> None:
        """Continue a journal that is there; RunError if it is about something else."""
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
                f"{name} is of another document, model or setting than this. Finish that work with the same command, "
                "or delete the file to begin anew."
            )
        else:
            self._count_whole_lines()
        file.flush()

    def append(self, outcomes: list[Outcome]) -> None:
        """Add outcomes; they are with the system when this returns."""
        self._file.write(b"".join(json.dumps(asdict(outcome)).encode() + b"\n" for outcome in outcomes))
        self._file.flush()
        self.count += len(outcomes)

    def __iter__(self) -> Iterator[Outcome]:
        self._file.seek(self._first)
        for _ in range(self.count):
            yield Outcome(**json.loads(self._file.readline()))
        self._file.seek(0, 2)

    def _count_whole_lines(self) -> None:
        end = self._first
        for line in self._file:
            if not line.endswith(b"\n") or not _is_outcome(line):
                break
            self.count += 1
            end += len(line)
        self._file.seek(end)
        self._file.truncate()


def journal_beside(output: Path) -> Path:
    """Return where the journal of a file that is being filled in stands."""
    return output.with_name(f"{output.name}.partial")


def _is_outcome(line: bytes) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and value.keys() == {"translation", "fault"}
