"""Peers that are commands: they read files, plan batches of their own and train until told to stop.

Such a system cannot wait for its turn within a step, so a round is two runs, one of a few steps and one of more; the
difference of their tokens over the difference of their processor times is the speed, free of start-up. The batches
hold the same number of tokens as everybody's, and the system's own choice of sentences.
"""

import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import python_of
from rounds import Task, read_task

STEPS = {"base": (2, 5), "small": (3, 12)}
ROUNDS = 2


@dataclass(frozen=True)
class Run:
    """What one run of a command was."""

    tokens: float
    processor_seconds: float
    peak_memory_bytes: int


def run(command: list[str | Path], *, folder: Path, tokens_in: Callable[[str], float]) -> Run:
    """Run a training command on one core and read its target tokens from what it prints."""
    single = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    pinned = [sys.executable, Path(__file__).parent / "pinned.py", *command]
    with (folder / "output.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [str(part) for part in pinned], cwd=folder, stdout=log, stderr=log, env=os.environ | single
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    printed = (folder / "output.log").read_text(encoding="utf-8", errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{printed[-2000:]}")
    return Run(tokens_in(printed), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def marian(task: Task, *, folder: Path, work: Path, python: Path, steps: int) -> Run:
    """Train with Marian's own trainer, as pymarian packs it."""
    pieces = (work / "pieces.txt").read_text(encoding="utf-8").split()
    names = ["</s>", "<unk>", *pieces]
    (folder / "vocabulary.yml").write_text("".join(f'"{name}": {number}\n' for number, name in enumerate(names)))
    (folder / "model.npz").unlink(missing_ok=True)
    command: list[str | Path] = [python.parent / "pymarian", "--model", folder / "model.npz", "--type", "transformer"]
    command += ["--train-sets", work / "train.source", work / "train.target"]
    command += ["--vocabs", folder / "vocabulary.yml", folder / "vocabulary.yml", "--tied-embeddings-all"]
    command += ["--enc-depth", str(task.layers), "--dec-depth", str(task.layers), "--dim-emb", str(task.d_model)]
    command += ["--transformer-heads", str(task.heads), "--transformer-dim-ffn", str(task.d_ff)]
    command += ["--transformer-dropout", str(task.dropout), "--label-smoothing", str(task.label_smoothing)]
    command += ["--mini-batch", "1000", "--mini-batch-words", "4096", "--max-length", "100", "--maxi-batch", "100"]
    command += ["--optimizer-params", str(task.beta1), str(task.beta2), str(task.epsilon), "--seed", "1"]
    command += ["--learn-rate", str(task.rate), "--after-batches", str(steps), "--disp-freq", "1"]
    command += ["--disp-label-counts", "--cpu-threads", "1", "--overwrite", "--sync-sgd", "--workspace", "2000"]

    def tokens_in(printed: str) -> float:
        return float(re.findall(r" after ([\d,]+)", printed)[-1].replace(",", ""))

    return run(command, folder=folder, tokens_in=tokens_in)


COMMAND_PEERS: dict[str, tuple[str, Callable[..., Run]]] = {"Marian (pymarian), float32": ("marian", marian)}


def rounds_of_commands(size: str, *, work: Path, venvs: Path) -> dict[str, Any]:
    """Return speed and memory of every such peer; one that fails is reported as failed and left out."""
    found = {}
    task = read_task(work / size)
    for name, (environment, train) in COMMAND_PEERS.items():
        folder = work / f"{size}-{environment}"
        folder.mkdir(exist_ok=True)
        try:
            python = python_of(environment, venvs)
            speeds, memory = [], 0
            for number in range(ROUNDS):
                print(f"{size}: {name}, round {number + 1} of {ROUNDS}", flush=True)
                few, more = (train(task, folder=folder, work=work, python=python, steps=steps) for steps in STEPS[size])
                speeds.append((more.tokens - few.tokens) / (more.processor_seconds - few.processor_seconds))
                memory = max(memory, more.peak_memory_bytes)
        except (RuntimeError, subprocess.CalledProcessError, IndexError) as fault:
            print(f"{name} is left out: {fault}", flush=True)
            continue
        speed = statistics.median(speeds)
        found[name] = {"tokens_per_second": speed, "peak_memory_mb": memory / 1e6, "rounds": speeds}
    return found
