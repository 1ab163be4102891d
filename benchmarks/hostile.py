"""What a client with a key gets while strangers hold 2,000 connections: loopback only, bounded, ends by itself.

    python benchmarks/hostile.py [MODEL] [--connections 2000] [--seconds 30]

Six kinds of strangers in niced processes on one core: silent, slow head, slow body, no key, wrong key, huge body; each
connection is renewed every 7 s. One client with a key sends a sentence at a time, first alone, then beside them. The
bar: goodput at least 90 % and p99 below twice that of the quiet time. Run it on a quiet machine.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEY = "a-key-of-many-letters"
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"q": "The old woman sells apples and pears.", "source": "en", "target": "de"}).encode()
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
KINDS = {
    "silent": (b"", b""),
    "slow head": (HEAD[:40], b"a"),
    "slow body": (HEAD + LENGTH + b"\r\n", BODY[:1]),
    "no key": (HEAD + LENGTH + b"\r\n" + BODY, b""),
    "wrong key": (HEAD + LENGTH + b"Authorization: Bearer wrong\r\n\r\n" + BODY, b""),
    "huge": (HEAD + b"Content-Length: 900000000\r\n\r\n" + b"x" * 65_536, b"x" * 1_024),
}
RENEWED, ROUND = 7.0, 1.0


async def stranger(port: int, kind: str, until: float) -> None:
    """Connect, send what the kind sends, and renew the connection every 7 s."""
    first, later = KINDS[kind]
    while (now := time.monotonic()) < until:
        writer = None
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 5)
            writer.write(first)
            while time.monotonic() < min(until, now + RENEWED):
                await asyncio.sleep(ROUND)
                if later:
                    writer.write(later)
                    await asyncio.wait_for(writer.drain(), 1)
        if writer is not None:
            writer.close()
        await asyncio.sleep(max(0.0, min(until, now + RENEWED) - time.monotonic()))


async def strangers(port: int, kind: str, count: int, seconds: float) -> None:
    """Run all connections of one kind, spread over the time between renewals."""
    until = time.monotonic() + seconds

    async def one(number: int) -> None:
        await asyncio.sleep(RENEWED * number / count)
        await stranger(port, kind, until)

    await asyncio.gather(*(one(number) for number in range(count)))


async def key_holder(port: int, seconds: float) -> tuple[list[float], int]:
    """Send a sentence at a time on connections of its own; return the times and the number of failures."""
    until, times, failed = time.monotonic() + seconds, [], 0
    while (began := time.monotonic()) < until:
        try:
            async with asyncio.timeout(10):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(
                    HEAD + LENGTH + f"Authorization: Bearer {KEY}\r\nConnection: close\r\n\r\n".encode() + BODY
                )
                answer = await reader.read()
                writer.close()
            is_good = answer.startswith(b"HTTP/1.1 200 ")
        except (OSError, TimeoutError):
            is_good = False
        if is_good:
            times.append(time.monotonic() - began)
        failed += not is_good
    return times, failed


def summary(times: list[float], failed: int, seconds: float) -> dict[str, float]:
    """Return requests a second, failures, and p50 and p99 in milliseconds."""
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [float("nan")] * 99
    p50, p99 = (round(1000 * cuts[at], 1) for at in (49, 98))
    return {"per_second": round(len(times) / seconds, 1), "failed": failed, "p50_ms": p50, "p99_ms": p99}


def measure(model: str, *, connections: int, seconds: float) -> dict[str, object]:
    """Start a server, measure the key holder alone and beside strangers, and return both."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        (Path(folder) / "keys").write_text(KEY, encoding="utf-8")
        command = [sys.executable, "-m", "transduce", "serve", model, "--port", "0", "--threads", "1"]
        command += ["--api-key-file", str(Path(folder) / "keys")]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        hostile: list[subprocess.Popen[bytes]] = []
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split("http://")[1].split()[0].rpartition(":")[2])
            asyncio.run(key_holder(port, 3))
            quiet = summary(*asyncio.run(key_holder(port, seconds)), seconds)
            for kind in KINDS:
                words = [kind, str(port), str(connections // len(KINDS)), str(seconds + 10)]
                hostile.append(subprocess.Popen([sys.executable, __file__, "--hostile", *words]))
            time.sleep(8)
            beside = summary(*asyncio.run(key_holder(port, seconds)), seconds)
        finally:
            for process in hostile:
                process.terminate()
            server.terminate()
            server.wait(60)
        size = (Path(folder) / "log").stat().st_size
    return {
        "quiet": quiet,
        "beside": beside,
        "goodput": round(beside["per_second"] / quiet["per_second"], 2),
        "log": size,
    }


def main() -> None:
    """Measure and print, or be the strangers of one kind."""
    if sys.argv[1:2] == ["--hostile"]:
        os.nice(10)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        kind, port, count, seconds = sys.argv[2:6]
        asyncio.run(strangers(int(port), kind, int(count), float(seconds)))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="?", default="en-de")
    parser.add_argument("--connections", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    print(json.dumps(measure(given.model, connections=given.connections, seconds=given.seconds), indent=1))


if __name__ == "__main__":
    main()
