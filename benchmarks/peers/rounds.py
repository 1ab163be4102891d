"""How a system under test is driven: it loads once, then runs the steps it is asked for, one request after another.

A request is a line of JSON on standard input, `{"batches": [3, 4, 5]}`; the answer is a line of JSON on standard output
with the processor and clock seconds that these steps took. Processes of several systems wait for each other's rounds,
so what the machine does meanwhile happens to all of them alike. Standard library and NumPy alone: this file runs in
every peer's own environment.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Task:
    """What every system trains: sizes, batches, settings."""

    vocabulary_size: int
    layers: int
    d_model: int
    d_ff: int
    heads: int
    dropout: float
    label_smoothing: float
    rate: float
    beta1: float
    beta2: float
    epsilon: float


def read_task(folder: Path) -> Task:
    """Return the task that the benchmark has written."""
    return Task(**json.loads((folder / "task.json").read_text(encoding="utf-8")))


def read_batches(folder: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the padded source and target ids of every batch; 0 is padding, both sides end in 3."""
    with np.load(folder / "batches.npz") as arrays:
        count = len(arrays.files) // 2
        return [(arrays[f"source{index}"], arrays[f"target{index}"]) for index in range(count)]


def serve(step: Callable[[int], float]) -> None:
    """Run `step` on the batches asked for until there is no more request; `step` returns the loss per token."""
    print(json.dumps({"ready": True, "torch": sys.modules["torch"].__version__}), flush=True)
    for line in sys.stdin:
        batches = json.loads(line)["batches"]
        clock, processor = time.perf_counter(), time.process_time()
        losses = [step(batch) for batch in batches]
        answer = {
            "processor_seconds": time.process_time() - processor,
            "clock_seconds": time.perf_counter() - clock,
            "loss": losses[-1],
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        print(json.dumps(answer), flush=True)


def one_core() -> None:
    """Keep this process, and whatever threads its libraries start, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
