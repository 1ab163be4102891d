"""What one study of one run finds, and what a study is given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transduce.progress import Progress


@dataclass(frozen=True)
class Finding:
    """One number of one run and seed, with its unit, other numbers by name, and a curve of (x, y)."""

    number: float
    unit: str
    also: Mapping[str, float] = field(default_factory=dict)
    points: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class StudyContext:
    """Where a study may keep what it trains, and how it reports and is stopped."""

    folder: Path
    seed: int
    progress: Progress
    stop_requested: Callable[[], bool]
    corpora: Mapping[str, str] = field(default_factory=dict)
    """The text by split."""


Study = Callable[[str, StudyContext], Finding | None]
"""A function of the run's name; it returns None if it was stopped."""
