"""Drives systems that wait for requests (see rounds.py), in alternation."""

import contextlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


class Broken(Exception):
    """A system has ended by itself; the message is the last that it said."""


class System:
    """A process that trains on request."""

    def __init__(self, command: Sequence[str | Path], *, log: Path, environment: dict[str, str] | None = None) -> None:
        single = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self.log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env=os.environ | single | (environment or {}),
            )

    def ask(self, request: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, if any, and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if request is not None:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("{"):  # libraries print things of their own
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise Broken(self.log.read_text(encoding="utf-8", errors="replace")[-1000:].strip())

    def close(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
