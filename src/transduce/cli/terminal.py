"""Shows `transduce.progress` on stderr: bars at a terminal, plain lines in a pipe or a log file.

At a terminal each open stage is one bar with the time left and a short text. When the stage ends, one line that says
what was done and how long it took replaces the bar. In a pipe or a log file a stage writes plain lines: one at the
start, one about every ten seconds, one at the end. A stage inside another stage leaves no line at a terminal; in a
pipe or a log file it writes lines only if it takes at least ten seconds.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TextIO

from rich import progress as rich_progress
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Column
from rich.text import Text

from transduce.errors import shown
from transduce.progress import Progress, Stage

SECONDS_BETWEEN_LINES = 10.0
# A stage that counts lines may advance a million times; rich gets at most ten updates a second.
_SECONDS_BETWEEN_UPDATES = 0.1


class SafeConsole(Console):
    """A console that shows control codes in its content, which may come from a stranger's file, and sends its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments, their text without control codes."""
        for segment in super().render(renderable, options):
            text = segment.text
            is_safe = segment.control or text == "\n" or text.isprintable()
            yield segment if is_safe else Segment(_shown_lines(text), segment.style)


def _shown_lines(text: str) -> str:
    return "\n".join(map(shown, text.split("\n")))


def terminal_progress(*, stream: TextIO | None = None) -> AbstractContextManager[Progress]:
    """Return the progress to pass to the library: bars if `stream` is a terminal, else lines; stderr unless given."""
    stream = stream or sys.stderr
    return _bars(stream) if is_watched(stream) else _lines(stream)


def is_watched(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that can redraw a line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def _bars(stream: TextIO) -> Iterator[Progress]:
    bars = _Bars(SafeConsole(file=stream, force_terminal=True, highlight=False))
    try:
        yield bars
    finally:
        bars.clear()  # also after an error or Ctrl-C: shows the cursor again and removes the bars


@contextmanager
def _lines(stream: TextIO) -> Iterator[Progress]:
    yield _Lines(stream)


def readable_duration(seconds: float) -> str:
    """Return a duration in readable units: 0.4 s, 12 s, 3 min 25 s, 2 h 14 min, 3 d 4 h."""
    if seconds < 9.95:
        return f"{round(seconds, 1):g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"


class _Work:
    """An open stage: counts the work that is done; rich estimates the time left."""

    def __init__(self, tasks: rich_progress.Progress, name: str, *, total: int | None, unit: str) -> None:
        self.name, self.unit, self.total = name, unit, total
        self.text = ""
        self.done = 0
        self._started = time.monotonic()
        self._unreported = 0
        self._last_report = -1.0  # show the first advance at once, because a resumed run starts far along
        self._tasks = tasks
        self.id = tasks.add_task(name, total=total, text="", unit=unit)

    def advance(self, amount: int = 1) -> None:
        self.done += amount
        self._unreported += amount
        now = time.monotonic()
        if now - self._last_report >= _SECONDS_BETWEEN_UPDATES:
            self._tasks.advance(self.id, self._unreported)
            self._unreported = 0
            self._last_report = now

    def describe(self, text: str) -> None:
        self.text = text
        self._tasks.update(self.id, text=text)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def amount(self) -> str:
        """The amount that is done, such as `12,000 of 29,000 sentences`."""
        of_total = f" of {self.total:,}" if self.total is not None and self.done != self.total else ""
        return f"{self.done:,}{of_total} {self.unit}".rstrip()

    def line_so_far(self) -> str:
        """Return one line with the amount done and the time left."""
        task = next(task for task in self._tasks.tasks if task.id == self.id)
        left = task.time_remaining if self.total else None
        share = f" ({self.done / self.total:.0%})" if self.total else ""
        parts = [self.amount + share, f"{readable_duration(left)} left" if left else "", self.text]
        return f"{self.name}: " + ", ".join(part for part in parts if part)

    def line_at_end(self) -> str:
        """Return one line with the amount done and the time it took."""
        amount = f"{self.amount} in " if self.done else ""
        text = f" ({self.text})" if self.text else ""
        return f"{self.name}: {amount}{readable_duration(self.seconds)}{text}"

    def line_when_stopped(self) -> str:
        """Return one line with the amount done before an error or Ctrl-C ended the stage."""
        amount = f" at {self.amount}" if self.done else ""
        return f"{self.name}: stopped{amount} after {readable_duration(self.seconds)}"


class _Bars:
    """Shows progress as bars at a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawing: rich_progress.Progress | None = None

    @contextmanager
    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        """Show a bar while the block runs."""
        is_outermost = self._drawing is None
        drawing = self._drawing or self._start_drawing()
        work = _Work(drawing, name, total=total, unit=unit)
        closing_line = work.line_when_stopped
        try:
            yield work
            closing_line = work.line_at_end
        finally:
            if is_outermost:
                self.clear()
                self._print(closing_line())
            else:
                drawing.remove_task(work.id)

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._print(message)

    def warn(self, message: str) -> None:
        """Print a line above the bars, marked as a warning."""
        self._print(f"warning: {message}", style="yellow")

    def clear(self) -> None:
        """Remove the bars from the screen."""
        if self._drawing:
            self._drawing.stop()
            self._drawing = None

    def _start_drawing(self) -> rich_progress.Progress:
        # By default rich redirects stdout to its console, here stderr. Output for a pipe must stay on stdout.
        self._drawing = _Drawing(
            rich_progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            rich_progress.BarColumn(bar_width=20, table_column=Column(min_width=8, no_wrap=True)),
            _AmountColumn(table_column=Column(no_wrap=True, justify="right")),
            _TimeLeftColumn(table_column=Column(no_wrap=True)),
            rich_progress.TextColumn(
                "{task.fields[text]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
            console=self._console,
            transient=True,
            expand=True,
            redirect_stdout=False,
            redirect_stderr=False,
            refresh_per_second=5,
        )
        self._drawing.live.start()
        return self._drawing

    def _print(self, message: str, *, style: str | None = None) -> None:
        self._console.print(Text(message), style=style)


class _Drawing(rich_progress.Progress):
    """Rich's progress bars, drawn only by rich's refresh thread and three columns narrower than the terminal.

    Ctrl-C can interrupt the main thread at any instruction. If that thread drew the bars, half a bar could remain.
    """

    def refresh(self) -> None:
        """Do nothing: the refresh thread draws five times a second."""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bars."""
        yield _NarrowerThanTerminal(self.make_tasks_table(self.tasks))


class _NarrowerThanTerminal:
    """Renders its content three columns narrower than the terminal.

    The terminal echoes Ctrl-C as ^C after the last bar. On a full line the echo would wrap onto a new line, and rich
    would then clear the wrong lines.
    """

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._content, options.update(width=max(1, options.max_width - 3))):
            yield from line
            yield Segment.line()


class _AmountColumn(rich_progress.ProgressColumn):
    """Shows the share that is done, or the count if the total is unknown."""

    def render(self, task: rich_progress.Task) -> Text:
        if task.total is None:
            return Text(f"{int(task.completed):,} {task.fields['unit']}".rstrip())
        return Text(f"{int(task.percentage)}%")  # rounded down, so that 100% means finished


class _TimeLeftColumn(rich_progress.ProgressColumn):
    """Shows the time left, or the time spent if the total is unknown."""

    max_refresh = 0.5

    def render(self, task: rich_progress.Task) -> Text:
        if task.total is None:
            return Text(readable_duration(round(task.elapsed or 0)))
        if task.time_remaining is None:
            return Text("")
        return Text(f"{readable_duration(round(task.time_remaining))} left")


class _Lines:
    """Shows progress as plain lines, for a pipe or a log file."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tasks = rich_progress.Progress(disable=True, auto_refresh=False)  # counts and estimates, draws nothing
        self._open_stages = 0

    @contextmanager
    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        """Write a line at the start, at intervals and at the end of the block."""
        work = _LinesStage(self, self._tasks, name, total=total, unit=unit)
        is_outermost = self._open_stages == 0
        self._open_stages += 1
        if is_outermost:
            self.note(f"{name}: started" + (f", {total:,} {unit}".rstrip() if total is not None else ""))
        closing_line = work.line_when_stopped
        try:
            yield work
            closing_line = work.line_at_end
        finally:
            self._open_stages -= 1
            self._tasks.remove_task(work.id)
            if is_outermost or work.seconds >= SECONDS_BETWEEN_LINES:
                self.note(closing_line())

    def note(self, message: str) -> None:
        """Write a message of one line or several."""
        self._stream.write(f"{_shown_lines(message)}\n")
        self._stream.flush()

    def warn(self, message: str) -> None:
        """Write a line marked as a warning."""
        self.note(f"warning: {message}")


class _LinesStage(_Work):
    """A stage that writes a line about every ten seconds."""

    def __init__(
        self, lines: _Lines, tasks: rich_progress.Progress, name: str, *, total: int | None, unit: str
    ) -> None:
        super().__init__(tasks, name, total=total, unit=unit)
        self._lines = lines
        self._last_line = time.monotonic()

    def advance(self, amount: int = 1) -> None:
        super().advance(amount)
        if time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._lines.note(self.line_so_far())
