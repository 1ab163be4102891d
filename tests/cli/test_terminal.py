"""Progress as people and log files see it."""

import io
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from transduce.cli import terminal
from transduce.cli.terminal import SafeConsole, readable_duration, terminal_progress

COLUMNS = 80


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (205, "3 min 25 s"),
        (3599.6, "1 h 0 min"),
        (8040, "2 h 14 min"),
        (86399, "1 d 0 h"),
        (273600, "3 d 4 h"),
    ],
)
def test_a_duration_is_said_in_at_most_two_units(seconds: float, words: str) -> None:
    assert readable_duration(seconds) == words


def lines_without_seconds(log: io.StringIO) -> list[str]:
    return re.sub(r"\b[\d.]+ s\b", "~ s", log.getvalue()).splitlines()


def test_control_codes_of_a_file_are_shown_and_not_sent() -> None:
    sent = io.StringIO()
    table = Table("\x1b]52;c;eA==\x07")
    table.add_row(Text("\x9b2J", style="red"))
    SafeConsole(file=sent, force_terminal=True, width=80).print(table)
    with terminal_progress(stream=sent) as progress:
        progress.warn("\x1b]0;title\x07 is not a name")
    assert r"\x1b]52;c;" in sent.getvalue()
    assert r"\x9b2J" in sent.getvalue()
    assert r"\x1b]0;title\x07 is not" in sent.getvalue()
    assert not re.search(r"\x1b(?!\[[\d;]*m)|[\x07\x9b]", sent.getvalue())


def test_a_log_has_a_line_at_the_start_and_end_of_a_stage_and_between_notes() -> None:
    log = io.StringIO()
    with terminal_progress(stream=log) as progress:
        progress.note("reading train.en\n  and train.de")
        with progress.stage("encode", total=29000, unit="sentences") as stage:
            stage.advance(28000)
            progress.warn("one line is empty")
            stage.advance(1000)
        with progress.stage("write") as stage:
            stage.describe("12 MB")
    lines = lines_without_seconds(log)
    assert lines[:5] == [
        "reading train.en",
        "  and train.de",
        "encode: started, 29,000 sentences",
        "warning: one line is empty",
        "encode: 29,000 sentences in ~ s",
    ]
    assert lines[5:] == ["write: started", "write: ~ s (12 MB)"]


def test_a_log_has_a_line_at_every_interval_with_share_time_left_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.25)
    log = io.StringIO()
    with terminal_progress(stream=log) as progress, progress.stage("train", total=1000, unit="steps") as stage:
        stage.describe("loss 4.31")
        for _ in range(6):
            stage.advance(50)
            time.sleep(0.13)
    lines = log.getvalue().splitlines()
    between = lines[1:-1]
    assert 1 <= len(between) <= 4  # far fewer than advances
    pattern = r"train: \d+ of 1,000 steps \(\d+%\), (\d+(\.\d)? s left, )?loss 4\.31"
    assert all(re.fullmatch(pattern, line) for line in between)
    assert re.fullmatch(r"train: 300 of 1,000 steps in [\d.]+ s \(loss 4\.31\)", lines[-1])


def test_a_resumed_stage_estimates_from_the_work_it_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first advance of a resumed run covers what an earlier process did: it says nothing about speed."""
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.3)
    log = io.StringIO()
    with terminal_progress(stream=log) as progress, progress.stage("train", total=101_000) as stage:
        stage.advance(100_000)
        for _ in range(4):
            time.sleep(0.11)
            stage.advance(1)
    left = re.search(r"([\d.]+) (s|min)\b.* left", log.getvalue())
    assert left is not None
    assert left[2] == "min", "996 more steps at nine a second take near two minutes"


def test_a_stage_inside_a_stage_is_silent_in_a_log_unless_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    with terminal_progress(stream=log) as progress, progress.stage("train"):
        with progress.stage("validate"):
            pass
        monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.0)
        with progress.stage("average"):
            pass
    assert lines_without_seconds(log) == ["train: started", "average: ~ s", "train: ~ s"]


def test_a_stage_that_an_error_ends_says_how_far_it_came() -> None:
    log = io.StringIO()

    def work() -> None:
        with terminal_progress(stream=log) as progress, progress.stage("train", total=9, unit="steps") as stage:
            stage.advance(4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert lines_without_seconds(log)[-1] == "train: stopped at 4 of 9 steps after ~ s"


def test_a_million_advances_cost_little() -> None:
    began = time.process_time()
    with terminal_progress(stream=io.StringIO()) as progress, progress.stage("lines", total=1_000_000) as stage:
        for _ in range(1_000_000):
            stage.advance()
    assert time.process_time() - began < 5  # 0.4 s on a quiet machine; a redraw for each would take minutes


def screen_after(output: str) -> list[str]:
    """Return what a terminal shows after `output`: a small emulator of the controls that rich uses."""
    rows, row, column = [""], 0, 0
    for control, text in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)|([^\x1b\r\n]+)", output):
        if control == "\r":
            column = 0
        elif control == "\n":
            row += 1  # the terminal itself turns a program's newline into carriage return and newline
        elif control == "\x1b[2K":
            rows[row] = ""
        elif re.fullmatch(r"\x1b\[\d*A", control):
            row -= int(control[2:-1] or 1)
        elif control:
            assert control[-1] in "mhl", f"unexpected control {control!r}"
        for character in text:
            if column == COLUMNS:
                row, column = row + 1, 0
            rows.extend([""] * (row + 1 - len(rows)))
            rows[row] = rows[row][:column].ljust(column) + character + rows[row][column + 1 :]
            column += 1
        rows.extend([""] * (row + 1 - len(rows)))
    return [line.rstrip() for line in rows if line.strip()]


@pytest.fixture
def run_in_terminal(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Run a script whose stdin and stderr are a real terminal of 80 columns; return what was shown and its stdout."""
    if sys.platform == "win32":
        pytest.skip("Windows has no pseudo-terminal of this kind")
    import pty
    import termios

    def run(body: str, *, interrupt_at: str | None = None) -> tuple[str, str]:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, COLUMNS))
        script = tmp_path / "script.py"
        script.write_text(
            "import fcntl, sys, termios, time\n"
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"  # so that a typed Ctrl-C reaches this process
            "from transduce.cli.terminal import terminal_progress\n" + textwrap.dedent(body),
            encoding="utf-8",
        )
        child = subprocess.Popen(
            [sys.executable, script],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"},
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side has closed
                break
            if not part:
                break
            shown += part
            if interrupt_at and interrupt_at.encode() in shown:
                os.write(ours, b"\x03")
                interrupt_at = None
        assert child.stdout is not None
        with child.stdout:
            stdout = child.stdout.read().decode()
        child.wait()
        os.close(ours)
        return shown.decode(), stdout

    return run


def test_a_terminal_shows_a_bar_and_afterwards_only_lines(run_in_terminal: Callable[..., tuple[str, str]]) -> None:
    shown, stdout = run_in_terminal(
        """
        with terminal_progress() as progress:
            with progress.stage("train", total=40, unit="steps") as stage:
                for step in range(40):
                    stage.advance()
                    stage.describe("loss 4.31 " + "and far more than fits " * 5)
                    time.sleep(0.02)
                    if step == 20:
                        progress.note("a [bold]note[/bold]")
                        progress.warn("a worry")
                        print("a translation")
                        with progress.stage("validate", unit="sentences") as inner:
                            inner.advance(1234)
                            time.sleep(0.3)
                stage.describe("loss 4.31")
        """
    )
    assert stdout == "a translation\n", "nothing but the command's own output may reach stdout, and all of it must"
    assert re.search(r"train.*━.*\d+%.*s left.*loss 4\.31.*…", shown)
    assert re.search(r"validate.*━.*1,234 sentences", shown)
    final = screen_after(shown)
    assert final[:2] == ["a [bold]note[/bold]", "warning: a worry"]
    assert re.fullmatch(r"train: 40 steps in [\d.]+ s \(loss 4\.31\)", final[2])
    assert len(final) == 3, "no bar may remain"
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), "the cursor must come back"


def test_ctrl_c_leaves_no_bar_and_brings_the_cursor_back(run_in_terminal: Callable[..., tuple[str, str]]) -> None:
    shown, _ = run_in_terminal(
        """
        try:
            with terminal_progress() as progress:
                with progress.stage("train", total=40, unit="steps") as stage:
                    stage.advance(3)
                    stage.describe("a long text " * 9)
                    with progress.stage("validate", unit="sentences") as inner:
                        time.sleep(20)
        except KeyboardInterrupt:
            sys.exit("interrupted")
        """,
        interrupt_at="validate",
    )
    final = screen_after(shown)
    assert re.fullmatch(r"train: stopped at 3 of 40 steps after [\d.]+ s", final[0])
    assert final[1:] == ["interrupted"]
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Typewriter(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    paper = Typewriter()
    with terminal_progress(stream=paper) as progress, progress.stage("train"):
        pass
    assert lines_without_seconds(paper) == ["train: started", "train: ~ s"]
