"""How fast a corpus is prepared, and how much of its batches is padding.

    python benchmarks/preparing.py [--runs 3] [--data ../shared/data/multi30k]

Prepares Multi30k English-German (29,000 training pairs) from gzip files to token stores, several times, on one core,
and reads processor time: on a shared machine it is steadier than the clock, which is reported beside it. Writes
results/preparing.json and results/preparing.md next to this file.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from transduce.data.batching import BatchPlan
from transduce.data.config import DataConfig
from transduce.data.preparation import Prepared, prepare
from transduce.progress import Silent, SilentStage, Stage

HERE = Path(__file__).parent
TARGET = 100_000
VOCABULARY = 8000


class Stopwatch(Silent):
    """Measures the processor time of every stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, *, total: int | None = None, unit: str = "") -> Iterator[Stage]:
        """Measure one stage."""
        start = time.process_time()
        yield SilentStage()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start


def measure_once(data: Path) -> tuple[dict[str, Any], Prepared]:
    """Prepare the corpus in an empty folder and return the times."""
    files = [("train", "train"), ("valid", "val"), ("test", "test_2016_flickr")]
    config = DataConfig.model_validate({split: f"{data / name}.en.gz,{data / name}.de.gz" for split, name in files})
    watch = Stopwatch()
    clock, processor = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        prepared = prepare(config, Path(folder), vocabulary_size=VOCABULARY, progress=watch)
    return {
        "processor_seconds": time.process_time() - processor,
        "clock_seconds": time.perf_counter() - clock,
        "stages": watch.seconds,
    }, prepared


def padding(prepared: Prepared) -> dict[str, float]:
    """Return the share of padding for several budgets, mean of three epochs."""
    lengths = prepared.train.source_lengths, prepared.train.target_lengths
    shares: dict[str, float] = {}
    for budget in (1024, 2048, 4096, 8192, 25_000):
        plan = BatchPlan(*lengths, tokens_per_step=budget, seed=1)
        epochs = [plan.epoch(epoch) for epoch in range(3)]
        shares[f"{budget:,}"] = statistics.mean(plan.padding(steps).share for steps in epochs)
        if budget > 4096:
            dealt = [
                [batch for step in steps for batch in plan.deal(step, micro_batch_tokens=4096)] for steps in epochs
            ]
            name = f"{budget:,} in micro-batches of 4,096"
            shares[name] = statistics.mean(plan.padding(batches).share for batches in dealt)
    return shares


def planning_seconds(pairs: int = 5_000_000) -> float:
    """Return how long it takes to plan an epoch of a large corpus."""
    random = np.random.default_rng(0)
    source = np.clip(random.normal(25, 12, pairs), 2, 250).astype(np.int64)
    target = np.clip(source + random.normal(0, 4, pairs), 2, 250).astype(np.int64)
    plan = BatchPlan(source, target, tokens_per_step=25_000, seed=1)
    start = time.process_time()
    plan.epoch(0)
    return time.process_time() - start


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        processor = models[0].split(": ")[1] if models else processor
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_average": load,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def written(result: dict[str, Any]) -> str:
    """Return the result as a page."""
    computer = result["machine"]
    busy = f"load average {computer['load_average']:.1f}" if computer["load_average"] is not None else "load unknown"
    rows = [f"| {name} | {seconds:.2f} |" for name, seconds in result["stages_median_processor_seconds"].items()]
    shares = [f"| {name} | {share:.1%} |" for name, share in result["padding"].items()]
    setting = (
        f"Multi30k English-German, {result['pairs']:,} pairs in all splits, gzip files to token stores, vocabulary "
        f"{VOCABULARY:,} learned on the way. Median of {result['runs']} runs, {computer['date']}, "
        f"{computer['processor']}, {computer['cores']} cores of which one is used, Python {computer['python']}, "
        f"{busy}: other processes were running where it is above 1, so processor time is what counts."
    )
    speed = (
        f"**{result['pairs_per_minute']:,.0f} pairs per minute and core** with learning the vocabulary, "
        f"{result['pairs_per_minute_without_learning']:,.0f} without; at least {TARGET:,} were asked for. "
        f"Clock: {result['clock_seconds']:.1f} s, processor: {result['processor_seconds']:.1f} s."
    )
    return "\n".join(
        [
            "# Preparing a corpus",
            "",
            setting,
            "",
            speed,
            "",
            "| stage | processor seconds |",
            "|---|---|",
            *rows,
            "",
            "Padding, both sides counted, mean of three epochs over the training pairs:",
            "",
            "| tokens per step | padding |",
            "|---|---|",
            *shares,
            "",
            f"Planning an epoch of 5,000,000 pairs took {result['planning_seconds_5m']:.1f} s of processor time.",
            "",
            "Made by `python benchmarks/preparing.py`.",
            "",
        ]
    )


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "multi30k")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"{options.data} is not there; give --data a folder with train.en.gz, train.de.gz and so on")
    runs, prepared = [], None
    for _ in range(options.runs):
        run, prepared = measure_once(options.data)
        runs.append(run)
    assert prepared is not None
    pairs = sum(split.pairs for split in prepared.report.splits.values())
    seconds = statistics.median(run["processor_seconds"] for run in runs)
    stages = {name: statistics.median(run["stages"][name] for run in runs) for name in runs[0]["stages"]}
    learning = stages["counting words"] + stages["learning the vocabulary"]
    result = {
        "machine": machine(),
        "runs": options.runs,
        "pairs": pairs,
        "processor_seconds": seconds,
        "clock_seconds": statistics.median(run["clock_seconds"] for run in runs),
        "stages_median_processor_seconds": stages,
        "pairs_per_minute": 60 * pairs / seconds,
        "pairs_per_minute_without_learning": 60 * pairs / (seconds - learning),
        "padding": padding(prepared),
        "planning_seconds_5m": planning_seconds(),
    }
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "preparing.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (HERE / "results" / "preparing.md").write_text(written(result), encoding="utf-8")
    print(written(result))


if __name__ == "__main__":
    main()
