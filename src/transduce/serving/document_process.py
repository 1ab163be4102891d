"""The server's side of the processes that parse documents: start them when needed, end those that exceed a limit.

Translation never waits for a parser: the models are in another process. At most two documents are parsed at a time, and
the others wait within their own time limit.
"""

import asyncio
import contextlib
import sys
from typing import Any

from transduce.serving.child import child_environment
from transduce.serving.frames import encode_frame, receive_frame
from transduce.serving.refusal import Refusal

_AT_ONCE = 2
_PIPE_BUFFER = 1 << 20


class DocumentProcesses:
    """Processes that compute `document_tasks`, each used by one request at a time and kept for the next."""

    def __init__(self, *, megabytes: int, seconds: int) -> None:
        self._limits = megabytes, seconds
        self._idle: list[asyncio.subprocess.Process] = []
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def compute(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; raise a Refusal that says what was too much or wrong."""
        async with self._places:
            process = self._idle.pop() if self._idle else await self._start()
            answer = None
            try:
                answer = await self._ask(process, request)
            finally:  # also when the request is cancelled: its process must not go on
                if answer is None or "too_much" in answer:
                    await _kill(process)
                else:
                    self._idle.append(process)
        return self._accepted(answer)

    async def stop(self) -> None:
        """End the processes that wait for a request."""
        while self._idle:
            await _kill(self._idle.pop())

    def _accepted(self, answer: dict[str, Any] | None) -> dict[str, Any]:
        if answer is None:  # the system ended the process: its limits are the only reason that we know
            megabytes, seconds = self._limits
            answer = {"too_much": f"more than {seconds} s of processor time or {megabytes:,} MB of memory"}
        if "too_much" in answer:
            raise Refusal(413, f"The document takes {answer['too_much']} to read. Split it into smaller files.")
        if "error" in answer:
            raise Refusal(400, f"Invalid request: {answer['error']}")
        if "fault" in answer:
            raise RuntimeError(answer["fault"])
        return answer

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "transduce.serving.document_tasks",
            *map(str, self._limits),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Threads of numpy's library would take most of the address space.
            env={**child_environment(), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            limit=_PIPE_BUFFER,
            start_new_session=True,
        )

    async def _ask(self, process: asyncio.subprocess.Process, request: dict[str, Any]) -> dict[str, Any] | None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(encode_frame(request))
            await process.stdin.drain()
            return await receive_frame(process.stdout)
        except (ConnectionError, OSError, ValueError):
            return None


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()
