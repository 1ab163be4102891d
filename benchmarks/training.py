"""Training speed of transduce and of other systems: the same work, the same core, in turns.

    python benchmarks/training.py [--quick] [--json FILE] [--venvs DIR] [--data DIR] [--rounds N]

Every system gets the same corpus (Multi30k English-German if it is there, else the demo's), the same vocabulary of
8,000 pieces, the same batches of 4,096 tokens, the same network, label smoothing, dropout and Adam, and one core. The
systems take turns for several rounds; figures are medians over rounds, and the peak that utilisation refers to is
measured between them. Processor time is what counts: on a shared machine the clock tells what the neighbours do.

--quick runs base and small against Hugging Face alone, which no other peer comes near, and writes no results but
FILE. Without it all systems run, and results/training.md and training.json are written next to this file.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

from command_peers import COMMAND_PEERS, rounds_of_commands  # noqa: E402
from driving import System  # noqa: E402
from environments import PINS, python_of  # noqa: E402
from rounds import read_batches, read_task  # noqa: E402
from tasks import operations, write_tasks  # noqa: E402
from training_page import page  # noqa: E402

OURS = "transduce, bf16"
STEPS = {"base": 2, "small": 6, "tiny": 8}
HUGGING_FACE = {
    "Hugging Face, bf16": ["bf16", "sdpa"],
    "Hugging Face, bf16, attention set to eager": ["bf16", "eager"],
    "Hugging Face, float32": ["float32", "sdpa"],
}


def commands(size: str, *, work: Path, venvs: Path, quick: bool) -> dict[str, list[str | Path]]:
    """Return how each system that works in rounds is started; ours comes first."""
    ours = [sys.executable, HERE / "peers" / "ours.py", work / size]
    found: dict[str, list[str | Path]] = {OURS: [*ours, "bf16"]}
    if not quick:
        found["transduce, float32"] = [*ours, "float32"]
    python = python_of("huggingface", venvs)
    for name, options in HUGGING_FACE.items():
        if "bf16" in name or not quick:
            found[name] = [python, HERE / "peers" / "huggingface.py", work / size, *options]
    return found


def measure(size: str, *, work: Path, venvs: Path, rounds: int, quick: bool) -> dict[str, Any]:
    """Run all systems on one size in turns and return everything that was measured."""
    task, batches = read_task(work / size), read_batches(work / size)
    chosen = list(range(STEPS[size]))
    source_path = {"PYTHONPATH": str(HERE.parent / "src")}
    peaks = System([sys.executable, HERE / "peers" / "products.py", "bf16"], log=work / "products.log")
    systems = {
        name: System(command, log=work / f"{size}-{index}.log", environment=source_path if index == 0 else None)
        for index, (name, command) in enumerate(commands(size, work=work, venvs=venvs, quick=quick).items())
    }
    for system in (peaks, *systems.values()):
        system.ask()
    for system in systems.values():
        system.ask({"batches": chosen[:1]})  # not counted: the first step allocates
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
    peak_rounds = []
    for number in range(rounds):
        print(f"{size}: round {number + 1} of {rounds}", flush=True)
        peak_rounds.append(peaks.ask({})["operations_per_second"])
        for name, system in systems.items():
            answers[name].append(system.ask({"batches": chosen}))
    for system in (peaks, *systems.values()):
        system.close()
    return {
        "tokens": sum(int((batches[index][1] != 0).sum()) for index in chosen),
        "operations": sum(operations(task, *batches[index]) for index in chosen),
        "peak_operations_per_second": peak_rounds,
        "systems": answers,
    }


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Return speed, utilisation and memory of every system, and the ratios that were asked for."""
    peak = statistics.median(found["peak_operations_per_second"])
    systems = {}
    for name, answers in found["systems"].items():
        seconds = statistics.median(answer["processor_seconds"] for answer in answers)
        systems[name] = {
            "tokens_per_second": found["tokens"] / seconds,
            "of_gemm_peak": found["operations"] / seconds / peak,
            "peak_memory_mb": answers[-1]["peak_memory_bytes"] / 1e6,
        }
    systems |= found.get("commands", {})
    ours = systems[OURS]
    peers = {name: each for name, each in systems.items() if not name.startswith("transduce")}
    fastest = max(peers, key=lambda name: peers[name]["tokens_per_second"])
    return {
        "against_fastest_peer": ours["tokens_per_second"] / peers[fastest]["tokens_per_second"],
        "of_gemm_peak": ours["of_gemm_peak"],
        "fastest_peer": fastest,
        "against_hugging_face_as_it_comes": ours["tokens_per_second"]
        / peers["Hugging Face, bf16"]["tokens_per_second"],
        "memory_of_leanest_peer": ours["peak_memory_mb"] / min(each["peak_memory_mb"] for each in peers.values()),
        "gemm_peak_gflops": peak / 1e9,
        "systems": systems,
    }


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    from transduce.compute import processor_name

    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "pins": PINS,
    }


def main() -> None:
    """Measure, print the ratios, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="base and small against Hugging Face, in bf16, alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios of base and small here")
    parser.add_argument("--venvs", type=Path, default=Path.home() / ".cache" / "transduce-peers")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "multi30k")
    parser.add_argument("--rounds", type=int, help="4 with --quick, else 5")
    options = parser.parse_args()
    rounds = options.rounds or (4 if options.quick else 5)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        corpus = write_tasks(work, data=options.data)
        raw = {}
        for size in ("base", "small") if options.quick else ("base", "small", "tiny"):
            raw[size] = measure(size, work=work, venvs=options.venvs, rounds=rounds, quick=options.quick)
            if not options.quick and size in ("base", "small"):
                raw[size]["commands"] = rounds_of_commands(size, work=work, venvs=options.venvs)
    ratios = {size: summary(found) for size, found in raw.items()}
    for size, found in ratios.items():
        print(f"{size}: {found['against_fastest_peer']:.2f} x {found['fastest_peer']}", end=", ")
        print(f"{found['against_hugging_face_as_it_comes']:.2f} x Hugging Face, bf16, as it comes", end=", ")
        print(f"{found['of_gemm_peak']:.1%} of the GEMM peak of {found['gemm_peak_gflops']:.0f} GFLOP/s", end=", ")
        print(f"{found['memory_of_leanest_peer']:.0%} of the leanest peer's memory")
    if options.json is not None:
        options.json.write_text(json.dumps(ratios, indent=1) + "\n", encoding="utf-8")
    if not options.quick:
        result = {"machine": machine(), "corpus": corpus, "rounds": rounds, "ratios": ratios, "raw": raw}
        (HERE / "results").mkdir(exist_ok=True)
        (HERE / "results" / "training.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (HERE / "results" / "training.md").write_text(page(result, names=COMMAND_PEERS), encoding="utf-8")


if __name__ == "__main__":
    main()
