"""The command line: each command reads its arguments, calls the library, and reports.

Only this room prints. Commands import the library inside their bodies, so that `--help` answers without torch.
"""

import io
import os
import sys

from transduce.cli.application import app
from transduce.errors import TransduceError

_CURABLE = 2
_READER_HAS_GONE = 141  # what a shell says of a program that SIGPIPE ended: 128 + 13


def main() -> None:
    """Run a command; what a user can cure is one line on stderr and exit code 2, never a traceback."""
    _speak_utf_8()
    stdout = sys.stdout
    try:
        try:
            app()
        finally:
            stdout.flush()  # here and not at Python's exit, where a closed pipe could only be complained of
    except TransduceError as error:
        sys.stderr.write(f"transduce: {error}\n")
        sys.exit(_CURABLE)
    except (BrokenPipeError, SystemExit) as end:
        # typer makes an exit with code 1, which is for our bugs, of a closed pipe that it meets itself.
        if not isinstance(end, BrokenPipeError) and not isinstance(end.__context__, BrokenPipeError):
            raise
        # The reader has gone (`| head`). Python flushes once more at its exit: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        sys.exit(_READER_HAS_GONE)


def _speak_utf_8() -> None:
    """Read and write UTF-8 and plain line ends whatever the system's own are: a translation must not depend on them."""
    faults = {sys.stdin: "strict", sys.stdout: "surrogateescape", sys.stderr: "backslashreplace"}
    for stream, errors in faults.items():
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(newline="\n")
