"""What two ranks on two cores reach of two independent runs of one core each, and whether threads would do better.

    python benchmarks/ranks.py [--steps 4] [--rounds 2] [--tokens 4096] [--preset base]

Trains the preset on random pairs in three ways, in turn, in every round: two runs of one core each that know nothing
of each other (the most that two cores can do); two ranks of one core each that train one model together; one process
with two threads. All take the same number of tokens per core and step.

Two clocks are read: the time of day, of which the shortest step counts, since whatever else a machine does only ever
lengthens a step; and the time that the processor spent on a process, its communication included, which does not see
others at all, nor waiting. Writes results/ranks-PRESET-TOKENS.json next to this file.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transduce.compute import configure_compute
from transduce.data.batch import Batch
from transduce.experiment import read_preset, validate_experiment
from transduce.machine import processor_name
from transduce.model.transformer import Transformer
from transduce.training.arithmetic import Arithmetic
from transduce.training.distributed import World, join_world
from transduce.training.randomness import seed_weights
from transduce.training.step import Stepper

HERE = Path(__file__).parent
WAYS = {"independent": 2, "ranks": 2, "threads": 1}
"""The ways to use two cores, and how many processes each takes."""
_LENGTH = 32


def batch(tokens: int, *, vocabulary: int, seed: int) -> Batch:
    """Return random pairs of so many target tokens, their lengths spread a little as in a real batch."""
    chance = np.random.default_rng(seed)
    rows = tokens // _LENGTH
    sides = []
    for _ in range(2):
        ids = chance.integers(300, vocabulary, size=(rows, _LENGTH))
        ids[:, -1] = 3
        sides.append(torch.from_numpy(ids))
    return Batch(*sides, sentences=np.arange(rows))


def work(way: str, *, index: int, preset: str, tokens: int, steps: int) -> list[tuple[float, float]]:
    """Train as one process of a way; return the seconds of each step but the first, of the day and of the processor."""
    threads = 2 if way == "threads" else 1
    if threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[index]})
    experiment = validate_experiment({**read_preset(preset), "data": {"train": ["x.tsv"]}}, where=preset)
    compute = configure_compute(threads=threads, precision="auto")
    seed_weights(1)
    model = Transformer(experiment.model)
    arithmetic = Arithmetic(torch.device("cpu"), compute.precision)
    with join_world() if way == "ranks" else contextlib.nullcontext(World()) as world:
        stepper = Stepper(model, experiment.training, arithmetic=arithmetic, world=world)
        shares = 2 if way == "threads" else 1
        batches = [
            batch(tokens, vocabulary=experiment.model.vocabulary_size, seed=index * shares + n) for n in range(shares)
        ]
        print("ready", flush=True)
        sys.stdin.readline()
        found = []
        for step in range(1, steps + 2):
            processor = time.process_time()
            found.append((stepper.take(step, batches).seconds, time.process_time() - processor))
        return found[1:]


def measure(way: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one way once; return the seconds of each step of each process."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    size = WAYS[way]
    processes = []
    for index in range(size):
        ranks = {"RANK": index, "LOCAL_RANK": index, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        extra = {name: str(value) for name, value in ranks.items()} if way == "ranks" else {}
        command = [sys.executable, __file__, "--way", way, "--index", str(index), *_given(options)]
        environment = {**os.environ, **extra, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        processes.append(
            subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1
            )
        )
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    seconds = [json.loads(process.communicate()[0]) for process in processes]
    return {"seconds": seconds}


def _rate(runs: list[dict[str, Any]], tokens: int, *, clock: int) -> float:
    """Return tokens per second of both cores: by the day of the shortest steps, by the processor of the median ones."""
    pick = statistics.median if clock else min
    processes = zip(*(run["seconds"] for run in runs), strict=True)
    steps = [[step[clock] for run in one for step in run] for one in processes]
    return round(sum(tokens / pick(seconds) for seconds in steps), 1)


def _given(options: argparse.Namespace) -> list[str]:
    return ["--steps", str(options.steps), "--tokens", str(options.tokens), "--preset", options.preset]


def main() -> None:
    """Measure all ways in turn, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--index", type=int, default=0)
    options = parser.parse_args()
    if options.way:
        given = {"preset": options.preset, "tokens": options.tokens, "steps": options.steps}
        print(json.dumps(work(options.way, index=options.index, **given)))
        return
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            found[way].append(measure(way, options))
            print(way, found[way][-1]["seconds"], flush=True)
    tokens = {way: options.tokens * (2 if way == "threads" else 1) for way in WAYS}
    by_day = {way: _rate(runs, tokens[way], clock=0) for way, runs in found.items()}
    by_processor = {way: _rate(found[way], tokens[way], clock=1) for way in ("independent", "ranks")}
    shares = {
        "ranks, by the day": by_day["ranks"] / by_day["independent"],
        "ranks, by the processor": by_processor["ranks"] / by_processor["independent"],
        "threads, by the day": by_day["threads"] / by_day["independent"],
    }
    print("of two independent runs:", {name: f"{share:.1%}" for name, share in shares.items()})
    result = {
        "command": f"python benchmarks/ranks.py {' '.join(_given(options))} --rounds {options.rounds}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"processor": processor_name(), "cores": os.cpu_count(), "python": platform.python_version()},
        "torch": torch.__version__,
        "target tokens per second of the day": by_day,
        "target tokens per second of the processor": by_processor,
        "share of two independent runs": {name: round(share, 4) for name, share in shares.items()},
        "runs": found,
    }
    (HERE / "results" / f"ranks-{options.preset}-{options.tokens}.json").write_text(
        json.dumps(result, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
