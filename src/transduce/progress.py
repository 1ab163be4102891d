"""The protocol through which library functions report their progress; only `cli/` displays it.

A long task opens a stage and advances it. The caller decides whether that shows as a bar, as a line every few seconds,
or not at all.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Stage(Protocol):
    """One task in progress."""

    def advance(self, amount: int = 1) -> None:
        """Report that `amount` more units are done."""

    def describe(self, text: str) -> None:
        """Show a short text beside the bar, such as the current loss."""


class Progress(Protocol):
    """Shows stages and messages to the user."""

    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> AbstractContextManager[Stage]:
        """Open a stage of `total` units; without a total, only a count is shown."""

    def note(self, message: str) -> None:
        """Show a line that stays on the screen."""

    def warn(self, message: str) -> None:
        """Show a warning that stays on the screen."""


class SilentStage:
    """A stage that shows nothing."""

    def advance(self, amount: int = 1) -> None:
        """Do nothing."""

    def describe(self, text: str) -> None:
        """Do nothing."""


class Silent:
    """Progress that shows nothing: the default of every library function."""

    @contextmanager
    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        """Open a stage that shows nothing."""
        yield SilentStage()

    def note(self, message: str) -> None:
        """Do nothing."""

    def warn(self, message: str) -> None:
        """Do nothing."""
