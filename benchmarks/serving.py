"""What the server bears: loopback only, bounded.

    python benchmarks/serving.py MODEL [--brief] [--only throughput,overload,kills,fuzz] [--seconds S] [--threads N]
    python benchmarks/serving.py MODEL --soak

- throughput: requests a second and p50/p99 against the number of clients, with batching across requests and without
- soak: 64 clients at 80 % of capacity for 10 minutes and at least 100,000 requests, while the memory of both processes
  is read
- overload: four times capacity; goodput against capacity, and how fast refusals come
- kills: 50 kills of the child under load; every request must be answered
- fuzz: 10,000 requests made up from our own OpenAPI (schemathesis); no 5xx that it does not document

Run it on a quiet machine: load generator and server share its cores. --brief divides everything by about fifty; it
tries the program, its figures mean little. --soak is the long one, over ten minutes, alone. Writes
results/serving.json and serving.md next to this file; sections that were not measured again stay there.
"""

import argparse
import asyncio
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from http_client import Connection, Tally
from serving_report import as_markdown

HERE = Path(__file__).parent
SENTENCES = (
    "A man in a blue shirt is standing on a ladder.",
    "Two dogs run.",
    "Several people wait at the station while a train that is very late comes in slowly.",
    "The old woman sells apples and pears at the market.",
    "It rains.",
    "Children play football in the park behind the school, and nobody watches them.",
)
SECTIONS = ("throughput", "overload", "kills", "fuzz")


@dataclass
class Scale:
    """How much of everything."""

    clients: tuple[int, ...] = (1, 4, 16, 64)
    seconds: float = 20.0
    soak_seconds: float = 600.0
    soak_requests: int = 100_000
    kills: int = 50
    fuzz: int = 10_000


class Server:
    """A server process on a free port."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log
        self.address = str(self.wait_for("listening")["address"])

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what has been logged under a name."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [event for line in lines if line.startswith("{") and (event := json.loads(line))["event"] == name]

    def wait_for(self, name: str, *, count: int = 1) -> dict[str, Any]:
        """Return an event once it has been logged `count` times."""
        end = time.monotonic() + 180
        while len(found := self.events(name)) < count:
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the server did not come to {name}: {self._log.read_text(encoding='utf-8')}")
            time.sleep(0.05)
        return found[count - 1]

    def child(self) -> int:
        """Return the newest child's process number."""
        return int(self.events("child ready")[-1]["process"])


@contextmanager
def server(model: str, *, threads: int, **options: object) -> Iterator[Server]:
    """Run a server with more options; it is ended afterwards and must exit with 0."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "transduce", "serve", model, "--port", "0", "--log-level", "info"]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--threads", str(threads), *flags], stdout=log, stderr=log)
        try:
            yield Server(process, Path(folder) / "log")
        finally:
            process.terminate()
            if process.wait(60) != 0:
                raise SystemExit(f"the server ended with {process.returncode}")


def languages(running: Server) -> dict[str, str]:
    """Return the pair that the server translates."""
    settings = httpx.get(f"{running.address}/frontend/settings", trust_env=False).json()["language"]
    return {"source": settings["source"]["code"], "target": settings["target"]["code"]}


async def load(
    running: Server, *, clients: int, is_over: Callable[[Tally], bool], rate: float | None = None
) -> tuple[Tally, float]:
    """Let clients ask one request after the other, together `rate` a second if given, until it is over."""
    pair, tally = languages(running), Tally()
    connections = [Connection(running.address) for _ in range(clients)]
    for connection in connections:
        await connection.open()
    began = time.monotonic()

    async def ask(number: int) -> None:
        connection = connections[number]
        due = began + (number / rate if rate else 0)
        while not is_over(tally):
            if rate:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                due += clients / rate
            text = SENTENCES[(number + tally.count(200)) % len(SENTENCES)]
            start = time.monotonic()
            try:
                status, headers = await connection.post("/translate", {"q": text, **pair})
            except (OSError, EOFError):
                tally.unanswered += 1
                connection.close()
                continue
            tally.add(status, time.monotonic() - start)
            if status in (429, 503) and rate is None:
                await asyncio.sleep(float(headers.get("retry-after", 1)))
        connection.close()

    await asyncio.gather(*(ask(number) for number in range(clients)))
    return tally, time.monotonic() - began


def for_seconds(seconds: float) -> Callable[[Tally], bool]:
    """Return what tells that a time is over, counted from its first question."""
    end: list[float] = []

    def is_over(tally: Tally) -> bool:
        if not end:
            end.append(time.monotonic() + seconds)
        return time.monotonic() > end[0]

    return is_over


def measure_throughput(model: str, scale: Scale, threads: int) -> dict[str, Any]:
    """Return requests a second and times against the number of clients, with and without batching."""
    found: dict[str, Any] = {}
    for name, tokens in (("batched", 1024), ("one by one", 1)):
        with server(model, threads=threads, batch_tokens=tokens) as running:
            asyncio.run(load(running, clients=4, is_over=for_seconds(min(3.0, scale.seconds))))
            rows = []
            for clients in scale.clients:
                tally, seconds = asyncio.run(load(running, clients=clients, is_over=for_seconds(scale.seconds)))
                rows.append(
                    {
                        "clients": clients,
                        "requests_per_second": round(tally.count(200) / seconds, 1),
                        "p50_ms": tally.percentile(200, 50),
                        "p99_ms": tally.percentile(200, 99),
                        "statuses": tally.statuses(),
                    }
                )
            found[name] = rows
    return found


def capacity_of(running: Server, scale: Scale) -> float:
    """Return how many requests a second 64 clients get answered."""
    tally, seconds = asyncio.run(load(running, clients=64, is_over=for_seconds(scale.seconds)))
    return tally.count(200) / seconds


def measure_soak(model: str, scale: Scale, threads: int) -> dict[str, Any]:
    """Return errors at 80 % of capacity, and the slope of memory in the second half of all requests."""
    with server(model, threads=threads) as running:
        capacity = capacity_of(running, scale)
        samples: list[tuple[int, float, float]] = []
        time_is_over = for_seconds(scale.soak_seconds)

        def is_over(tally: Tally) -> bool:
            done = tally.count(200)
            if len(samples) * scale.soak_requests <= done * 100:
                samples.append((done, *(resident(process) for process in (running.process.pid, running.child()))))
            return time_is_over(tally) and done >= scale.soak_requests

        tally, seconds = asyncio.run(load(running, clients=64, rate=0.8 * capacity, is_over=is_over))
    half = samples[len(samples) // 2 :]
    slopes = [
        statistics.linear_regression([own[0] for own in half], [own[place] for own in half]).slope * 1e5
        for place in (1, 2)
    ]
    return {
        "capacity_per_second": round(capacity, 1),
        "seconds": round(seconds),
        "statuses": tally.statuses(),
        "unanswered": tally.unanswered,
        "p50_ms": tally.percentile(200, 50),
        "p99_ms": tally.percentile(200, 99),
        "megabytes_per_100000_requests": {"server": round(slopes[0], 2), "child": round(slopes[1], 2)},
        "megabytes_at_half": {"server": round(half[0][1], 1), "child": round(half[0][2], 1)},
        "megabytes_at_end": {"server": round(half[-1][1], 1), "child": round(half[-1][2], 1)},
    }


def resident(process: int) -> float:
    """Return the memory of a process in MB (Linux alone tells)."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_overload(model: str, scale: Scale, threads: int) -> dict[str, Any]:
    """Return what is answered, and how fast the rest is refused, at four times capacity."""
    with server(model, threads=threads, queue_limit=128) as running:
        capacity = capacity_of(running, scale)
        before = processor_seconds(running)
        tally, seconds = asyncio.run(load(running, clients=512, rate=4 * capacity, is_over=for_seconds(scale.seconds)))
        used = {name: round((own - before[name]) / seconds, 2) for name, own in processor_seconds(running).items()}
        refusals = sorted(one["seconds"] for one in running.events("request") if one["status"] == 429)
    return {
        "capacity_per_second": round(capacity, 1),
        "offered_per_second": round(4 * capacity, 1),
        "sent_per_second": round(sum(map(len, tally.seconds.values())) / seconds, 1),
        "goodput_share_of_capacity": round(tally.count(200) / seconds / capacity, 3),
        "refusal_p99_ms": tally.percentile(429, 99),
        "refusal_p99_ms_inside_the_server": round(1000 * refusals[int(0.99 * len(refusals))], 1) if refusals else None,
        "statuses": tally.statuses(),
        "unanswered": tally.unanswered,
        "cores_used": used,
    }


def processor_seconds(running: Server) -> dict[str, float]:
    """Return what the server, its child and this program have used of the processor (Linux alone tells)."""
    ticks = os.sysconf("SC_CLK_TCK")
    found = {"clients": time.process_time()}
    for name, process in (("server", running.process.pid), ("child", running.child())):
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        found[name] = (int(fields[11]) + int(fields[12])) / ticks
    return found


def measure_kills(model: str, scale: Scale, threads: int) -> dict[str, Any]:
    """Return what became of requests while the child was killed again and again."""
    with server(model, threads=threads, request_seconds=60) as running:
        done = 0

        async def kill() -> None:
            nonlocal done
            for number in range(scale.kills):
                os.kill(running.child(), signal.SIGKILL)
                await asyncio.to_thread(running.wait_for, "child ready", count=number + 2)
                done += 1
                await asyncio.sleep(0.5)

        async def play() -> tuple[Tally, float]:
            killing = asyncio.create_task(kill())
            found = await load(running, clients=16, is_over=lambda tally: killing.done())
            await killing
            return found

        tally, seconds = asyncio.run(play())
    return {
        "kills": done,
        "statuses": tally.statuses(),
        "unanswered": tally.unanswered,
        "seconds_per_kill": round(seconds / done, 2),
    }


def measure_fuzz(model: str, scale: Scale, threads: int) -> dict[str, Any]:
    """Return the answers to requests made up from our own description."""
    import schemathesis

    with server(model, threads=threads) as running, httpx.Client(timeout=90, trust_env=False) as client:
        described = client.get(f"{running.address}/openapi.json").json()
        operations = [result.ok() for result in schemathesis.openapi.from_dict(described).get_all_operations()]
        answers: list[tuple[str, str, int | None]] = []
        # An operation without a body can be asked in one way only: go round until there were enough in all.
        while len(answers) < scale.fuzz:
            for operation in operations:
                answers += _answers_to_made_up(client, operation, running.address, most=scale.fuzz // len(operations))
        ready = client.get(f"{running.address}/health/ready").status_code
    statuses = [status for _, _, status in answers]
    undocumented = {
        f"{method} {path} {status}"
        for method, path, status in answers
        if status is not None and str(status) not in described["paths"][path][method.lower()]["responses"]
    }
    return {
        "requests": len(answers),
        "statuses": {str(status): statuses.count(status) for status in sorted(set(statuses), key=str)},
        "undocumented": sorted(undocumented),
        "ready_afterwards": ready,
    }


def _answers_to_made_up(
    client: httpx.Client,
    operation: Any,  # noqa: ANN401 - schemathesis's own
    address: str,
    *,
    most: int,
) -> list[tuple[str, str, int | None]]:
    """Ask one operation in as many ways as can be made up, and return method, path and status of each."""
    from hypothesis import HealthCheck, Phase, given, settings

    answers: list[tuple[str, str, int | None]] = []

    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:  # noqa: ANN401
        answers.append((case.method, case.path, _sent(client, case, address)))

    ask()
    return answers


def _sent(client: httpx.Client, case: Any, address: str) -> int | None:  # noqa: ANN401
    """Send a made-up request and return its status, or None where it cannot be written as HTTP."""
    try:
        parts = case.as_transport_kwargs(base_url=address)
        data = parts.get("data")
        request = client.build_request(
            parts["method"],
            parts["url"],
            params=parts.get("params"),
            headers={name: value for name, value in (parts.get("headers") or {}).items() if name.lower() != "host"},
            json=parts.get("json"),
            data=data if isinstance(data, dict) else None,
            content=data if isinstance(data, bytes | str) else None,
            files=parts.get("files"),
        )
        request.read()  # a form is written only now
    except (UnicodeError, ValueError, TypeError, AttributeError):
        return None
    return client.send(request).status_code


def main() -> None:
    """Measure what is asked for and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--soak", action="store_true", help="the long run alone")
    parser.add_argument("--seconds", type=float, default=Scale.seconds, help="of each load, but for the soak's")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    brief = Scale(clients=(1, 8), seconds=2.0, soak_seconds=4.0, soak_requests=400, kills=1, fuzz=120)
    scale = brief if asked.brief else Scale(seconds=asked.seconds)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    path = results / "serving.json"
    for name in ["soak"] if asked.soak else asked.only.split(","):
        machine = f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start"
        figures = globals()[f"measure_{name}"](asked.model, scale, asked.threads)
        print(json.dumps({name: figures}, indent=1), flush=True)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found[name] = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": machine,
            "model": Path(asked.model).name,
            "threads": asked.threads,
            "is_brief": asked.brief,
            "figures": figures,
        }
        path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        (results / "serving.md").write_text(as_markdown(found), encoding="utf-8")


if __name__ == "__main__":
    main()
