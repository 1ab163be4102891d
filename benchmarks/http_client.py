"""What benchmarks of the server ask with: one connection, kept, and a tally of what came back."""

import asyncio
import json
import statistics
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tally:
    """What came back: times by status, and requests that got no answer at all."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    unanswered: int = 0

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.seconds.setdefault(status, []).append(seconds)

    def count(self, status: int) -> int:
        """Return how many answers had a status."""
        return len(self.seconds.get(status, []))

    def statuses(self) -> dict[str, int]:
        """Return the number of answers by status."""
        return {str(status): len(times) for status, times in sorted(self.seconds.items())}

    def percentile(self, status: int, percent: int) -> float | None:
        """Return a time in milliseconds that `percent` of the answers of a status stayed below."""
        times = self.seconds.get(status, [])
        return round(1000 * statistics.quantiles(times, n=100)[percent - 1], 1) if len(times) > 1 else None


class Connection:
    """A client that keeps its connection. Plain asyncio: a client library would itself be the bottleneck here."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("http://").rpartition(":")
        self._place = host, int(port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, unless that is done."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place)
        return self._streams

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str]]:
        """Return status and headers of the answer; raise OSError or EOFError where there is none."""
        reader, writer = await self.open()
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        await reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), headers

    def close(self) -> None:
        """Forget the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
