"""The command line: each command reads its arguments, calls the library, and reports.

Only this package prints. Commands import the library inside their bodies, so that `--help` does not load torch.
"""

import io
import os
import sys
from pathlib import Path
from typing import TextIO

from transduce.cli.application import app
from transduce.errors import TransduceError
from transduce.extras import LEARNING
from transduce.files import disk_faults_explained
from transduce.machine import is_out_of_memory

_CURABLE = 2
_LESS_MEMORY = (
    "To train with less, lower model.d_model, model.layers, model.vocabulary_size or training.micro_batch_tokens; to "
    "translate with less, lower --beam or --threads."
)
_READER_HAS_GONE = 141  # 128 + 13, the exit code of a program that SIGPIPE ended


def main() -> None:
    """Run a command; an error that the user can fix prints one line on stderr, without traceback, and exits with 2."""
    _use_utf_8()
    stdout = sys.stdout
    try:
        with disk_faults_explained(Path("standard output")):  # other files have a name in their error
            try:
                app()
            finally:
                stdout.flush()  # flush here: an error in Python's own flush at exit cannot be caught
    except TransduceError as error:
        sys.stderr.write(f"transduce: {error}\n")
        _discard(stdout)
        sys.exit(_CURABLE)
    except ModuleNotFoundError as fault:
        if fault.name not in LEARNING:
            raise
        sys.stderr.write(f"transduce: this command needs {fault.name}: pip install 'transduce[train]'\n")
        sys.exit(_CURABLE)
    except (MemoryError, RuntimeError) as fault:
        if not is_out_of_memory(fault):
            raise
        sys.stderr.write(f"transduce: memory ran out. {_LESS_MEMORY}\n")
        sys.exit(_CURABLE)
    except FileNotFoundError as fault:
        if "temporary directory" not in str(fault):
            raise
        sys.stderr.write("transduce: no folder for temporary files can be written. Set TMPDIR to one that can.\n")
        sys.exit(_CURABLE)
    except (BrokenPipeError, SystemExit) as end:
        # When typer itself meets a closed pipe, it exits with code 1, which we reserve for bugs.
        if not isinstance(end, BrokenPipeError) and not isinstance(end.__context__, BrokenPipeError):
            raise
        _discard(stdout)  # the reader has closed the pipe (`| head`)
        sys.exit(_READER_HAS_GONE)


def _discard(stdout: TextIO) -> None:
    """Discard what Python flushes to stdout at exit: that flush would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _use_utf_8() -> None:
    """Read and write UTF-8 with plain line ends on every system: a translation must not depend on the locale."""
    faults = {sys.stdin: "strict", sys.stdout: "surrogateescape", sys.stderr: "backslashreplace"}
    for stream, errors in faults.items():
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(newline="\n")
