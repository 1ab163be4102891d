"""What a client with a key gets while strangers hold 2,000 connections: loopback only, bounded, ends by itself.

    python benchmarks/hostile.py [MODEL] [--connections 2000] [--seconds 25] [--rounds 3]

Six kinds of strangers in niced processes on one core, from ten addresses: silent, slow head, slow body, no key, wrong
key, huge body; each connection is renewed every 7 s. A client with a key sends one sentence after the other, in turns
alone and beside them. The bar: goodput at least 90 % and p99 below twice that of the quiet turns; every line of the
log is JSON, at most 110 lines a second on average. Run it on a quiet machine: with the defaults it takes about four
minutes. Writes results/hostile.json and hostile.md next to this file.
"""

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from transduce.machine import processor_name
from transduce.version import __version__

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
RENEWED, ROUND, ADDRESSES = 7.0, 1.0, 10
LEAST_GOODPUT, MOST_P99, MOST_LINES = 0.9, 2.0, 110
RESULTS = Path(__file__).parent / "results"


async def stranger(port: int, kind: str, until: float, *, address: str) -> None:
    """Connect, send what the kind sends, and renew the connection every 7 s."""
    first, later = KINDS[kind]
    while (now := time.monotonic()) < until:
        writer = None
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)), 5)
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
        await stranger(port, kind, until, address=f"127.0.0.{2 + number % ADDRESSES}")

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


def summary(turns: list[tuple[list[float], int]], seconds: float) -> dict[str, float]:
    """Return requests a second, failures, and p50 and p99 in milliseconds, over turns of so many seconds."""
    times = [time for own, _ in turns for time in own]
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else [float("nan")] * 99
    p50, p99 = (round(1000 * cuts[at], 1) for at in (49, 98))
    per_second = round(len(times) / seconds / len(turns), 1)
    return {"per_second": per_second, "failed": sum(failed for _, failed in turns), "p50_ms": p50, "p99_ms": p99}


def beside_strangers(port: int, *, connections: int, seconds: float) -> tuple[list[float], int]:
    """Measure the key holder while strangers hold their connections."""
    hostile: list[subprocess.Popen[bytes]] = []
    try:
        for kind in KINDS:
            words = [kind, str(port), str(connections // len(KINDS)), str(seconds + 3 * RENEWED)]
            hostile.append(subprocess.Popen([sys.executable, __file__, "--hostile", *words]))
        time.sleep(RENEWED + 2)  # until all have come
        return asyncio.run(key_holder(port, seconds))
    finally:
        for process in hostile:
            process.terminate()
        for process in hostile:
            process.wait()


def about_log(file: Path, seconds: float) -> dict[str, Any]:
    """Return the size of the server's log, its lines a second, and whether all of them are JSON."""
    lines = file.read_bytes().splitlines()
    is_json = all(line.startswith(b'{"time": ') and line.endswith(b"}") for line in lines)
    return {"bytes": file.stat().st_size, "lines_a_second": round(len(lines) / seconds, 1), "is_json": is_json}


def measure(model: str, *, connections: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Start a server, and measure the key holder in turns alone and beside strangers."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        (Path(folder) / "keys").write_text(KEY, encoding="utf-8")
        (Path(folder) / "keys").chmod(0o600)
        command = [sys.executable, "-m", "transduce", "serve", model, "--port", "0", "--threads", "1"]
        command += ["--api-key-file", str(Path(folder) / "keys")]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        began = time.monotonic()
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().split("http://")[1].split()[0].rpartition(":")[2])
            asyncio.run(key_holder(port, 3))
            quiet, beside = [], []
            for _ in range(rounds):
                quiet.append(asyncio.run(key_holder(port, seconds)))
                beside.append(beside_strangers(port, connections=connections, seconds=seconds))
        finally:
            server.terminate()
            server.wait(60)
        logged = about_log(Path(folder) / "log", time.monotonic() - began)
    found: dict[str, Any] = {"quiet": summary(quiet, seconds), "beside": summary(beside, seconds), "log": logged}
    found["goodput"] = round(found["beside"]["per_second"] / found["quiet"]["per_second"], 3)
    found["p99_ratio"] = round(found["beside"]["p99_ms"] / found["quiet"]["p99_ms"], 2)
    found["holds"] = (
        found["goodput"] >= LEAST_GOODPUT
        and found["p99_ratio"] < MOST_P99
        and not found["beside"]["failed"]
        and logged["is_json"]
        and logged["lines_a_second"] <= MOST_LINES
    )
    return found


def as_markdown(found: dict[str, Any]) -> str:
    """Return the results as a page."""
    quiet, beside, log = found["quiet"], found["beside"], found["log"]
    rows = {"sentences a second": "per_second", "p50 in ms": "p50_ms", "p99 in ms": "p99_ms", "failed": "failed"}
    table = "\n".join(f"| {title} | {quiet[key]} | {beside[key]} |" for title, key in rows.items())
    return (
        f"# A server beside strangers\n\n{found['connections']:,} connections without a valid key, of six kinds, each "
        f"renewed every {RENEWED:g} s, from niced clients on one core; one client with a key and the model "
        f"{found['model']}, {found['rounds']} turns of {found['seconds']:g} s each. {found['processor']}, "
        f"{found['cores']} cores, {found['system']}, transduce {found['transduce']}, {found['date']}.\n\n"
        f"| client with a key | alone | beside strangers |\n|---|---|---|\n{table}\n\n"
        f"Goodput {found['goodput']:.1%} (bar: {LEAST_GOODPUT:.0%}), p99 {found['p99_ratio']:.2f} times (bar: below "
        f"{MOST_P99:g}). Log: {log['bytes']:,} bytes, {log['lines_a_second']} lines a second, "
        f"{'all' if log['is_json'] else 'not all'} of them JSON. "
        f"The bar {'holds' if found['holds'] else 'does not hold'}."
        "\n\n    python benchmarks/hostile.py\n"
    )


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
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    wanted = {"connections": given.connections, "seconds": given.seconds, "rounds": given.rounds}
    conditions = {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "transduce": __version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    found = {"model": given.model, **wanted, **conditions, **measure(given.model, **wanted)}
    (given.results / "hostile.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (given.results / "hostile.md").write_text(as_markdown(found), encoding="utf-8")
    print(as_markdown(found))


if __name__ == "__main__":
    main()
