"""A pair of sentences as it stood in a file, and which of a file's columns a corpus wants."""

from dataclasses import dataclass
from typing import NamedTuple

from transduce.data.config import Column


class Pair(NamedTuple):
    """A source and its translation, unchanged."""

    source: str
    target: str
    line: int
    """Where it stands in its file, from 1; for two aligned files, in both."""
    skipped: str = ""
    """Why the format itself says not to use it (fuzzy, obsolete, …); counted and listed like every dropped pair."""


@dataclass(frozen=True)
class Selection:
    """Which languages or columns of a file are the source and the target."""

    source_language: str | None = None
    target_language: str | None = None
    source_column: Column | None = None
    target_column: Column | None = None
