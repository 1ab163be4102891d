"""What follows from the rounds of the training benchmark, and the page that says it."""

import statistics
from typing import Any

OURS = "transduce, bf16"

# Measured on 2026-11-15 on a machine of the same kind, each patched to install; target tokens per processor second.
QUOTED = """
Quoted, not measured here: systems that cannot be installed unpatched on this Python, as they ran on 2026-11-15 on a
machine of the same kind (target tokens per processor second, small / base): fairseq 0.12.2 1,315 / 253,
OpenNMT-py 3.5.1 1,161 / 235, Sockeye 3.1.34 1,036 / 195.

Where they differ: all but Marian, which plans its own batches of 4,096 tokens, get the very same batches. Marian and
JoeyNMT train in float32 alone on a processor. JoeyNMT applies its one dropout to attention weights and inside the
feed-forward network as well; Eole's decoder is pre-norm. Hugging Face has no trainer command for translation: it runs
in a plain loop with fused Adam; "attention set to eager" is not what it chooses by itself.
"""


def figures(answers: list[dict[str, Any]], part: dict[str, Any], *, peak: float) -> dict[str, float]:
    """Return the speed, utilisation and memory of one system: medians over its rounds."""
    speed = statistics.median(each.get("tokens", part["tokens"]) / each["processor_seconds"] for each in answers)
    return {
        "tokens_per_second": speed,
        "of_gemm_peak": speed * part["operations"] / part["tokens"] / peak,
        "peak_memory_mb": max(each["peak_memory_bytes"] for each in answers) / 1e6,
        "rounds": len(answers),
    }


def summary(parts: dict[str, Any]) -> dict[str, Any]:
    """Return what was found on one size: every system beside ours in the same rounds, and the ratios asked for."""
    systems: dict[str, dict[str, float]] = {}
    peaks = []
    for part in parts.values():
        peaks.append(statistics.median(part["peak_operations_per_second"]))
        found = {name: figures(answers, part, peak=peaks[-1]) for name, answers in part["systems"].items()}
        for name, each in found.items():
            against = found[OURS]["tokens_per_second"] / each["tokens_per_second"]
            systems.setdefault(name, {**each, "ours_against_it": against})
    peers = {name: each for name, each in systems.items() if not name.startswith("transduce")}
    fastest = min(peers, key=lambda name: peers[name]["ours_against_it"])
    leanest = min(each["peak_memory_mb"] for each in peers.values())
    return {
        "against_fastest_peer": peers[fastest]["ours_against_it"],
        "of_gemm_peak": systems[OURS]["of_gemm_peak"],
        "fastest_peer": fastest,
        "memory_of_leanest_peer": systems[OURS]["peak_memory_mb"] / leanest,
        "gemm_peak_gflops": peaks[0] / 1e9,
        "systems": systems,
        "broken": {name: why for part in parts.values() for name, why in part["broken"].items()},
    }


def page(result: dict[str, Any]) -> str:
    """Return the results in words and tables."""
    computer = result["machine"]
    parts = [part for groups in result["raw"].values() for part in groups.values()]
    corpora, dates = ({part[key] for part in parts} for key in ("corpus", "date"))
    setting = (
        f"{' and '.join(sorted(corpora))}, 8,000 pieces, batches of 4,096 tokens, label smoothing 0.1, dropout 0.1, "
        "Adam; one core, in turns, medians over rounds, target tokens per second of processor time. "
        f"{' and '.join(sorted(dates))}, {computer['processor']}, Python {computer['python']}, load averages of "
        f"{min(part['load_average'] for part in parts):.1f} to {max(part['load_average'] for part in parts):.1f}. "
        "Utilisation counts the matrix products of tokens, none of padding, against the fastest bf16 product measured "
        "between the rounds. Systems come in groups that fit into memory, ours in each; "
        "a ratio is one of medians in the same rounds."
    )
    lines = ["# Training speed", "", setting, ""]
    lines += ["| model | against the fastest peer | of the GEMM peak | memory against the leanest peer |"]
    lines += ["|---|---|---|---|"]
    for size, found in result["ratios"].items():
        lines.append(
            f"| {size} | {found['against_fastest_peer']:.2f} × ({found['fastest_peer']}) | {found['of_gemm_peak']:.1%} "
            f"of {found['gemm_peak_gflops']:.0f} GFLOP/s | {found['memory_of_leanest_peer']:.0%} |"
        )
    for size, found in result["ratios"].items():
        lines += table(size, found)
    lines += [QUOTED, "bf16 beside float32: training_curves.md. Longer sentences, more words: training_growth.md.", ""]
    lines += ["Raw rounds: training.json. Made by `python benchmarks/training.py`.", ""]
    return "\n".join(lines)


def table(size: str, found: dict[str, Any]) -> list[str]:
    """Return one size's systems, the fastest first, and those that did not run."""
    lines = ["", f"## {size}", ""]
    lines += ["| system | tokens/s | ours against it | of the GEMM peak | peak memory, MB | rounds |", "|---" * 6 + "|"]
    for name, each in sorted(found["systems"].items(), key=lambda item: item[1]["ours_against_it"]):
        lines.append(
            f"| {name} | {each['tokens_per_second']:,.0f} | {each['ours_against_it']:.2f} × "
            f"| {each['of_gemm_peak']:.1%} | {each['peak_memory_mb']:,.0f} | {each['rounds']} |"
        )
    for name, why in found["broken"].items():
        lines += ["", f"Left out, because it did not run: {name}: `{why}`"]
    return lines
