"""What two ranks on two cores reach of two independent runs of one core each, and whether threads would do better.

    python benchmarks/ranks.py [--steps 4] [--rounds 2] [--tokens 4096] [--preset base]

Trains the preset on random pairs in three ways, in turn, each round anew: two runs of one core each that know nothing
of each other (the most that two cores can do); two ranks of one core each that train one model together; one process
with two threads. All take the same number of tokens per core and step. Writes results/ranks.json next to this file.
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
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transduce.compute import processor_name, settle
from transduce.data.batch import Batch
from transduce.experiment import read_preset, validate_experiment
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


def work(way: str, *, index: int, preset: str, tokens: int, steps: int) -> list[float]:
    """Train as one process of a way, and return the seconds of each step but the first."""
    threads = 2 if way == "threads" else 1
    if threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[index]})
    experiment = validate_experiment({**read_preset(preset), "data": {"train": ["x.tsv"]}}, where=preset)
    compute = settle(threads=threads, precision="auto")
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
        return [stepper.take(step, batches).seconds for step in range(1, steps + 2)][1:]


def measure(way: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one way once; return tokens per second of both cores together."""
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
    rates = [options.tokens * (2 if way == "threads" else 1) / statistics.median(one) for one in seconds]
    return {"tokens per second": round(sum(rates), 1), "seconds": seconds}


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
            print(way, found[way][-1], flush=True)
    rates = {way: statistics.median(one["tokens per second"] for one in runs) for way, runs in found.items()}
    share, of_threads = (rates[way] / rates["independent"] for way in ("ranks", "threads"))
    print(f"two ranks reach {share:.1%} of two independent runs; two threads {of_threads:.1%}")
    result = {
        "command": f"python benchmarks/ranks.py {' '.join(_given(options))} --rounds {options.rounds}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"processor": processor_name(), "cores": os.cpu_count(), "python": platform.python_version()},
        "torch": torch.__version__,
        "target tokens per second": rates,
        "ranks of independent": round(share, 4),
        "threads of independent": round(of_threads, 4),
        "runs": found,
    }
    (HERE / "results" / "ranks.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
