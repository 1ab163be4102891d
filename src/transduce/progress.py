"""The protocol through which rooms report what they are doing; only `cli/` draws it.

A long piece of work opens a stage and advances it; whoever calls decides whether that becomes a bar, a plain
line every few seconds, or nothing.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Stage(Protocol):
    """One piece of work under way."""

    def advance(self, amount: int = 1) -> None:
        """Say that `amount` more units are done."""

    def describe(self, text: str) -> None:
        """Show a short text beside the bar, such as the present loss."""


class Progress(Protocol):
    """What a room is given to report through."""

    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> AbstractContextManager[Stage]:
        """Open a stage of `total` units; an unknown total is shown as a count."""

    def note(self, message: str) -> None:
        """Tell the user one line that stays on the screen."""

    def warn(self, message: str) -> None:
        """Tell the user one line that should worry them a little."""


class SilentStage:
    """A stage nobody watches."""

    def advance(self, amount: int = 1) -> None:
        """Do nothing."""

    def describe(self, text: str) -> None:
        """Do nothing."""


class Silent:
    """Progress nobody watches: the default of every library function."""

    @contextmanager
    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        """Open a stage that reports nothing."""
        yield SilentStage()

    def note(self, message: str) -> None:
        """Do nothing."""

    def warn(self, message: str) -> None:
        """Do nothing."""
