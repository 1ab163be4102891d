"""The server's side of the child process: start it, send it rounds, end it.

A child that dies or breaks the protocol raises `ChildProcessError` from the call that waits for its answer.
"""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from transduce.errors import ModelError
from transduce.serving.config import ENVIRONMENT_PREFIX
from transduce.serving.frames import encode_frame, receive_frame
from transduce.text.tokenizer_pair import TokenizerPair

_PIPE_BUFFER = 1 << 20
_SECONDS_TO_END = 5.0


class Child:
    """One process that holds the models. It computes one round at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._rounds = 0
        self.models: dict[str, dict[str, Any]] = {}
        """By name, the description of each model that it loaded at its start: `worker.describe`."""
        self.tokenizers: dict[str, TokenizerPair] = {}
        """By name, the tokenizers of these models, so that the server counts tokens as the child does."""
        self.resident_bytes: int | None = None
        self.loaded: list[str] = []
        """The models in memory, the least recently used first."""

    @classmethod
    async def start(cls, settings: dict[str, Any], *, seconds_to_load: float) -> "Child":
        """Start a process and wait until it has loaded its models and translated once with each."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "transduce.serving.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=child_environment(),
            limit=_PIPE_BUFFER,
            start_new_session=True,  # Ctrl-C goes to the server alone, which ends the child after the last round
        )
        child = cls(process)
        try:
            answer = await asyncio.wait_for(child._ask(settings), seconds_to_load)
            if "refused" in answer:
                raise ModelError(str(answer["refused"]))
            child.models = answer["ready"]
            child._note_memory(answer)
            child.tokenizers = {name: _read_tokenizers(model) for name, model in child.models.items()}
        except BaseException:
            await child.kill()
            raise
        return child

    @property
    def process_id(self) -> int:
        """The operating system's id of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """False once the process is known to have ended."""
        return self._process.returncode is None

    async def compute(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return one result for each item of a round."""
        self._rounds += 1
        answer = await self._ask({**request, "round": self._rounds})
        if answer.get("round") != self._rounds or len(answer.get("results", ())) != len(request["items"]):
            raise ChildProcessError("the child's answer does not belong to this round")
        self._note_memory(answer)
        return list(answer["results"])

    def _note_memory(self, answer: dict[str, Any]) -> None:
        self.resident_bytes, self.loaded = answer.get("resident_bytes"), answer["loaded"]

    async def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(encode_frame(message))
            await self._process.stdin.drain()
            answer = await receive_frame(self._process.stdout)
        except (ConnectionError, OSError, ValueError) as fault:
            raise ChildProcessError(f"the pipe to the child broke: {type(fault).__name__}") from None
        if answer is None:
            raise ChildProcessError("the child has ended")
        return answer

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    async def end(self) -> None:
        """Close the child's input, which makes it exit; kill it if it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _SECONDS_TO_END)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """Kill the process at once."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()


def _read_tokenizers(model: dict[str, Any]) -> TokenizerPair:
    source = None if model["source_tokenizer"] is None else Path(model["source_tokenizer"])
    return TokenizerPair.read(Path(model["tokenizer"]), source=source, source_end=model["source_end"])


def child_environment() -> dict[str, str]:
    """Return the environment without the server's options, such as the path of the key file: the child needs none."""
    return {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
