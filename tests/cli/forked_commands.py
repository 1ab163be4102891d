"""Runs commands in forked children: torch is imported once, and yet each command is a process with an exit code.

Started as a program, it reads one JSON object a line from stdin (arguments, folder, stdout, largest file) and answers
with one (exit code, output). Root could write anywhere: the program gives that power up first.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

_MAY_NOT_OVERRIDE_MODES = "may not override modes"
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


class Ended(NamedTuple):
    code: int
    output: str
    """Of stdout and stderr, or of stderr alone if stdout goes elsewhere."""


class ForkedCommands:
    """The running program."""

    def __init__(self) -> None:
        environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, encoding="utf-8"
        )

    def run(
        self, *arguments: str | Path, folder: Path, stdout: Path | None = None, largest_file: int | None = None
    ) -> Ended:
        """Run `transduce ARGUMENTS` in `folder`; it can write no file longer than `largest_file` bytes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = [[*map(str, arguments)], str(folder), str(stdout) if stdout else None, largest_file]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


def _serve_requests() -> None:
    import transduce.cli.loading
    import transduce.pipeline.command
    import transduce.serving.server  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(_run(*json.loads(line))), flush=True)


def _run(arguments: list[str], folder: str, stdout: str | None, largest_file: int | None) -> tuple[int, str]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _become(arguments, folder, os.open(stdout, os.O_WRONLY) if stdout else writer, writer, largest_file)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        output = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output


def _become(arguments: list[str], folder: str, stdout: int, stderr: int, largest_file: int | None) -> None:
    """Be the command, and end as it does."""
    from transduce.cli import main

    code: Any = 70
    try:
        os.chdir(folder)
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        sys.argv = ["transduce", *arguments]
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    if os.geteuid() == 0 and sys.argv[1:] != [_MAY_NOT_OVERRIDE_MODES]:
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        os.execv(sys.executable, [sys.executable, __file__, _MAY_NOT_OVERRIDE_MODES])
    _serve_requests()
