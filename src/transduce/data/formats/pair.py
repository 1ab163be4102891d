"""A pair of sentences as read from a file, and the choice of languages or columns to read."""

from dataclasses import dataclass
from typing import NamedTuple

from transduce.data.config import Column, DataConfig
from transduce.text.trees import TreePart


class Pair(NamedTuple):
    """A source and its translation, as the file has them."""

    source: str
    target: str
    line: int
    """The line in the file, or in both aligned files, counted from 1."""
    skipped: str = ""
    """Why not to train on this pair, according to the file itself (fuzzy, obsolete, …); empty otherwise."""


@dataclass(frozen=True)
class Selection:
    """What to read of a file as source and target: languages or columns, and parts of trees."""

    source_language: str | None = None
    target_language: str | None = None
    source_column: Column | None = None
    target_column: Column | None = None
    tree_keeps: tuple[TreePart, ...] = ()
    """What the symbols of trees keep."""

    @classmethod
    def of(cls, data: DataConfig) -> "Selection":
        """Return what a run reads of every file."""
        return cls(data.source_language, data.target_language, data.source_column, data.target_column, data.tree_keeps)
