"""The figures of `serving.py` as a page: `results/serving.md`, made from `results/serving.json`."""

from collections.abc import Callable
from typing import Any

Figures = dict[str, Any]


def as_markdown(found: Figures) -> str:
    """Return a page of all sections that have been measured."""
    parts = ["# Serving\n\n`python benchmarks/serving.py MODEL`, loopback, server and load generator on one machine.\n"]
    for name, (title, write) in _SECTIONS.items():
        if name in found:
            own = found[name]
            brief = "; a brief run, whose figures mean little" if own["is_brief"] else ""
            where = f"{own['date']}, model {own['model']}, {own['threads']} thread(s), {own['machine']}{brief}."
            parts.append(f"## {title}\n\n{where}\n\n{write(own['figures'])}\n")
    return "\n".join(parts)


def _throughput(figures: Figures) -> str:
    rows = ["| clients | batched: requests/s | p50 ms | p99 ms | one by one: requests/s | p50 ms | p99 ms |"]
    rows.append("|---|---|---|---|---|---|---|")
    for batched, alone in zip(figures["batched"], figures["one by one"], strict=True):
        cells = [own[key] for own in (batched, alone) for key in ("requests_per_second", "p50_ms", "p99_ms")]
        rows.append(f"| {batched['clients']} | " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(rows)


def _soak(figures: Figures) -> str:
    slopes, halves = figures["megabytes_per_100000_requests"], figures["megabytes_at_half"]
    ends = figures["megabytes_at_end"]
    return (
        f"64 clients at 80 % of {figures['capacity_per_second']} requests/s for {figures['seconds']:g} seconds: "
        f"{_statuses(figures['statuses'])}, {figures['unanswered']} without an answer, p50 {figures['p50_ms']} ms, p99 "
        f"{figures['p99_ms']} ms. Memory in the second half grew by {slopes['server']} MB (server) and "
        f"{slopes['child']} MB (model process) per 100,000 requests: from {halves['server']} and {halves['child']} MB "
        f"to {ends['server']} and {ends['child']} MB."
    )


def _overload(figures: Figures) -> str:
    return (
        f"Capacity {figures['capacity_per_second']} requests/s, offered {figures['offered_per_second']}, sent "
        f"{figures['sent_per_second']}. Goodput: **{100 * figures['goodput_share_of_capacity']:.0f} %** of capacity. "
        f"Refusals, p99: **{figures['refusal_p99_ms']} ms** as clients see it, "
        f"{figures['refusal_p99_ms_inside_the_server']} ms inside the server. {_statuses(figures['statuses'])}, "
        f"{figures['unanswered']} without an answer. Cores used: "
        + ", ".join(f"{name} {value}" for name, value in figures["cores_used"].items())
        + "."
    )


def _kills(figures: Figures) -> str:
    return (
        f"{figures['kills']} kills under 16 clients, one every {figures['seconds_per_kill']} s: "
        f"{_statuses(figures['statuses'])}, {figures['unanswered']} without an answer."
    )


def _fuzz(figures: Figures) -> str:
    undocumented = ", ".join(figures["undocumented"]) or "none"
    return (
        f"{figures['requests']:,} requests from our own OpenAPI: {_statuses(figures['statuses'])}. Statuses that it "
        f"does not document: {undocumented}. Ready afterwards: {figures['ready_afterwards']}."
    )


def _statuses(statuses: dict[str, int]) -> str:
    told = {"None": "not to be written as HTTP and not sent"}
    return ", ".join(f"{count:,} × {told.get(status, status)}" for status, count in statuses.items())


_SECTIONS: dict[str, tuple[str, Callable[[Figures], str]]] = {
    "throughput": ("Throughput", _throughput),
    "soak": ("80 % of capacity, and memory", _soak),
    "overload": ("Four times capacity", _overload),
    "kills": ("Kills of the model process under load", _kills),
    "fuzz": ("Made-up requests (schemathesis)", _fuzz),
}
