"""The child process and how it is talked to: started, awaited, asked, ended.

A child that ends, or breaks the protocol, while something is asked of it raises `ChildProcessError`.
"""

import asyncio
import contextlib
import os
import sys
from dataclasses import dataclass
from typing import Any

from transduce.errors import ModelError
from transduce.serving.frames import encode_frame, receive_frame
from transduce.text.tokenizer_pair import TokenizerPair

_PIPE_BUFFER = 1 << 20
_SECONDS_TO_END = 5.0


@dataclass(frozen=True)
class ChildOrder:
    """What a child is started with."""

    models: dict[str, str]
    """Names and folders."""
    threads: int | None
    precision: str
    seconds_to_load: float
    glossary: str | None = None
    """A file of terms."""
    terms: str = "enforced"

    def as_message(self) -> dict[str, Any]:
        """Return the child's first frame."""
        own = {"models": self.models, "threads": self.threads, "precision": self.precision}
        return {**own, "glossary": self.glossary, "terms": self.terms}


class Child:
    """One process that holds the models. Ask one round at a time."""

    def __init__(self, process: asyncio.subprocess.Process, models: dict[str, dict[str, Any]]) -> None:
        self._process = process
        self._rounds = 0
        self.models = models
        """What each model says of itself, by name."""
        self.tokenizers: dict[str, TokenizerPair] = {}
        """Each model's own, so that the server counts tokens as the child does."""
        self.resident_bytes: int | None = None

    @classmethod
    async def start(cls, order: ChildOrder) -> "Child":
        """Start a process and wait until it has loaded its models and translated with each."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "transduce.serving.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=_environment(),
            limit=_PIPE_BUFFER,
            start_new_session=True,  # Ctrl-C is for the server, which ends its child when it has finished
        )
        child = cls(process, {})
        try:
            message = await asyncio.wait_for(child._ask(order.as_message()), order.seconds_to_load)
        except BaseException:
            await child.kill()
            raise
        if "refused" in message:
            await child.end()
            raise ModelError(str(message["refused"]))
        child.models = message["ready"]
        child.resident_bytes = message.get("resident_bytes")
        return child

    @property
    def process_id(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process has not been seen to end."""
        return self._process.returncode is None

    async def compute(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the results of a round; raise `ChildProcessError` if the child dies over it."""
        self._rounds += 1
        answer = await self._ask({**request, "round": self._rounds})
        if answer.get("round") != self._rounds or len(answer.get("results", ())) != len(request["items"]):
            raise ChildProcessError("the child answered another question")
        self.resident_bytes = answer.get("resident_bytes")
        return list(answer["results"])

    async def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(encode_frame(message))
            await self._process.stdin.drain()
            answer = await receive_frame(self._process.stdout)
        except (ConnectionError, OSError, ValueError) as fault:
            raise ChildProcessError(f"the child's pipe broke: {type(fault).__name__}") from None
        if answer is None:
            raise ChildProcessError("the child has ended")
        return answer

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    async def end(self) -> None:
        """Close the child's input, after which it ends by itself; one that does not is killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _SECONDS_TO_END)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the process whatever it does."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()


def _environment() -> dict[str, str]:
    # The child needs no secret of the server's: options and keys stay out of its environment.
    return {name: value for name, value in os.environ.items() if not name.startswith("TRANSDUCE_SERVE_")}
