"""Training speed of transduce and of other systems: the same work, the same core, in turns.

    python benchmarks/training.py [--quick] [--json FILE] [--venvs DIR] [--data DIR] [--rounds N]
                                  [--sizes base small tiny] [--groups huggingface eole others]

Every system gets the same corpus (Multi30k English-German if it is there, else the demo's), the same vocabulary of
8,000 pieces, the same batches of 4,096 tokens, the same network, label smoothing, dropout and Adam, and one core. The
systems take turns for several rounds; figures are medians over rounds, and the peak that utilisation refers to is
measured between them. Processor time is what counts: on a shared machine the clock tells what the neighbours do.

All systems at once would not fit into memory, so they come in groups, and transduce takes part in each: a ratio is
always one of two systems that took turns. --quick runs base and small against Hugging Face in bf16 alone, which no
other peer comes near, and writes no results but FILE. Without it results/training.md and training.json are written
next to this file; with --sizes or --groups, those parts of them are renewed and the others kept.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

from driving import Broken, System  # noqa: E402
from environments import PINS, python_of  # noqa: E402
from marian import Marian  # noqa: E402
from rounds import read_batches, read_task  # noqa: E402
from tasks import operations, write_tasks  # noqa: E402
from training_page import OURS, page, summary  # noqa: E402

TORCH = "2.13.0"
SIZES = ("base", "small", "tiny")
GROUPS = {
    "huggingface": {
        "Hugging Face, bf16, attention set to eager": ("huggingface", "huggingface.py", "bf16", "eager"),
        "Hugging Face, bf16": ("huggingface", "huggingface.py", "bf16", "sdpa"),
        "Hugging Face, float32": ("huggingface", "huggingface.py", "float32", "sdpa"),
    },
    "eole": {
        "Eole, bf16": ("eole", "eole_steps.py", "bf16"),
        "Eole, float32": ("eole", "eole_steps.py", "float32"),
        "transduce, float32": (None, "ours.py", "float32"),
    },
    "others": {
        "JoeyNMT, float32": ("joeynmt", "joeynmt_steps.py"),
        "Marian, float32": ("marian", None),
    },
}
# Rounds, and steps in a round: more where it is close.
ROUNDS = {"huggingface": 5, "eole": 3, "others": 3}
STEPS = {
    "huggingface": {"base": 2, "small": 6, "tiny": 8},
    "eole": {"base": 1, "small": 3, "tiny": 4},
    "others": {"base": 1, "small": 3, "tiny": 4},
}


def start(how: tuple[str | None, ...], *, size: str, work: Path, venvs: Path) -> System | Marian:
    """Start one system on one size and wait until it has loaded."""
    environment, script, *options = how
    python = Path(sys.executable) if environment is None else python_of(environment, venvs)
    place = work / f"{size}-{'-'.join(str(part) for part in how)}"
    system: System | Marian
    if script is None:
        system = Marian(read_task(work / size), folder=place, work=work, python=python)
    else:
        command = [python, HERE / "peers" / script, work / size, *(option for option in options if option)]
        source_path = {"PYTHONPATH": str(HERE.parent / "src")} if environment is None else None
        system = System(command, log=place.with_suffix(".log"), environment=source_path)
    torch = system.ask().get("torch", TORCH)
    if not torch.startswith(TORCH):
        raise Broken(f"{python} has torch {torch} and not {TORCH}, so its figures would not be comparable.")
    return system


def start_all(group: str, *, size: str, work: Path, venvs: Path, quick: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """Start ours and a group's systems and let each take a step; return those that can, and why the others cannot."""
    running: dict[str, Any] = {OURS: start((None, "ours.py", "bf16"), size=size, work=work, venvs=venvs)}
    broken = {}
    for name, how in GROUPS[group].items():
        if quick and "bf16" not in name:
            continue
        try:
            running[name] = start(how, size=size, work=work, venvs=venvs)
            running[name].ask({"batches": [0]})  # not counted: the first step allocates
        except (Broken, OSError, subprocess.CalledProcessError) as fault:
            running.pop(name, None)
            broken[name] = str(fault).splitlines()[-1]
            print(f"{name} is left out: {fault}", flush=True)
    running[OURS].ask({"batches": [0]})
    return running, broken


def measure(size: str, group: str, *, work: Path, venvs: Path, rounds: int, quick: bool) -> dict[str, Any]:
    """Run a group's systems on one size in turns and return everything that was measured."""
    task, batches = read_task(work / size), read_batches(work / size)
    count = STEPS[group][size]
    chosen = [len(batches) * (2 * place + 1) // (2 * count) for place in range(count)]
    peaks = System([sys.executable, HERE / "peers" / "products.py", "bf16"], log=work / "products.log")
    peaks.ask()
    systems, broken = start_all(group, size=size, work=work, venvs=venvs, quick=quick)
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
    peak_rounds = []
    for number in range(rounds):
        print(f"{size}, {group}: round {number + 1} of {rounds}", flush=True)
        peak_rounds.append(peaks.ask({})["operations_per_second"])
        for name, system in systems.items():
            answers[name].append(system.ask({"batches": chosen}))
    for system in (peaks, *systems.values()):
        system.close()
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "load_average": os.getloadavg()[0],
        "tokens": sum(int((batches[index][1] != 0).sum()) for index in chosen),
        "operations": sum(operations(task, *batches[index]) for index in chosen),
        "peak_operations_per_second": peak_rounds,
        "systems": answers,
        "broken": broken,
    }


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    from transduce.machine import processor_name

    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "pins": PINS,
    }


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="base and small against Hugging Face, in bf16, alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios of base and small here")
    parser.add_argument("--venvs", type=Path, default=Path.home() / ".cache" / "transduce-peers")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "multi30k")
    parser.add_argument("--rounds", type=int, help="4 with --quick, else 5 for Hugging Face and 3 for the others")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="which models; default: all")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, help="which peers; default: all")
    options = parser.parse_args()
    options.sizes = options.sizes or (SIZES[:2] if options.quick else SIZES)
    options.groups = ["huggingface"] if options.quick else options.groups or list(GROUPS)
    return options


def main() -> None:
    """Measure, print the ratios, and write what was asked for."""
    options, results = arguments(), HERE / "results" / "training.json"
    raw: dict[str, dict[str, Any]] = {}
    if not options.quick and results.is_file():
        raw = json.loads(results.read_text(encoding="utf-8"))["raw"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        corpus = write_tasks(work, data=options.data)
        for size in options.sizes:
            for group in options.groups:
                rounds = options.rounds or (4 if options.quick else ROUNDS[group])
                found = measure(size, group, work=work, venvs=options.venvs, rounds=rounds, quick=options.quick)
                raw.setdefault(size, {})[group] = {"corpus": corpus, **found}
    ratios = {size: summary(raw[size]) for size in SIZES if size in raw}
    for size, each in ratios.items():
        print(f"{size}: {each['against_fastest_peer']:.2f} x {each['fastest_peer']}", end=", ")
        print(f"{each['of_gemm_peak']:.1%} of the GEMM peak of {each['gemm_peak_gflops']:.0f} GFLOP/s", end=", ")
        print(f"{each['memory_of_leanest_peer']:.0%} of the leanest peer's memory")
    if options.json is not None:
        options.json.write_text(json.dumps(ratios, indent=1) + "\n", encoding="utf-8")
    if not options.quick:
        result = {"machine": machine(), "ratios": ratios, "raw": raw}
        results.parent.mkdir(exist_ok=True)
        results.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        results.with_suffix(".md").write_text(page(result), encoding="utf-8")


if __name__ == "__main__":
    main()
