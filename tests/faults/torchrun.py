"""Ranks killed at random under `torchrun --max-restarts`: the weights are those of a run whose ranks all lived."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import small_run

KILLS_OF_A_RUN = 10


def launched(corpus: Path, output: Path, log: Path) -> "subprocess.Popen[bytes]":
    """Start `torchrun -m transduce train` with two ranks."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    restarts = ("--max-restarts=1000", "--monitor-interval=0.1")
    own = small_run.command(corpus, output)[1:]  # all but the interpreter: -m transduce train …
    with log.open("wb") as file:
        return subprocess.Popen([*launcher, *restarts, *own], env=small_run.environment(), stdout=file, stderr=file)


def ranks_of(process: "subprocess.Popen[bytes]") -> list[int]:
    """Return the ranks that torchrun has started and that live."""
    try:
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    except FileNotFoundError:
        return []
    return [int(child) for child in listed.split()]


def campaign(folder: Path, *, kills: int, seed: int, told: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Kill a rank this often; return the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    chance, corpus, log = random.Random(seed), small_run.write_text(folder / "corpus"), folder / "log.txt"
    started = time.monotonic()
    assert launched(corpus, folder / "whole", log).wait() == 0, log.read_text(encoding="utf-8")
    duration = time.monotonic() - started
    expected = small_run.fingerprint(folder / "whole")
    killed = runs = 0
    while killed < kills:
        output = folder / "killed"
        process = launched(corpus, output, log)
        killed += _run(process, chance, duration, most=min(KILLS_OF_A_RUN, kills - killed))
        code = _ended(process)
        said = log.read_text(encoding="utf-8", errors="replace")[-3000:]
        assert code == 0, f"seed {seed}, {killed} kills: the ranks did not end well ({code}) {said}"
        assert not (other := small_run.difference(output, expected)), f"seed {seed}, {killed} kills: {other} {said}"
        shutil.rmtree(output)
        runs += 1
        told(f"{killed} ranks killed, {runs} runs ended with the same weights")
    return {"kills": killed, "runs": runs}


def _run(process: "subprocess.Popen[bytes]", chance: random.Random, duration: float, *, most: int) -> int:
    """Kill ranks of a run until it was struck `most` times or has ended; return how many were struck."""
    killed = 0
    while killed < most and process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0.15, 0.9) * duration)
        ranks = ranks_of(process)
        if len(ranks) == 2:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(ranks), signal.SIGKILL)
                killed += 1
        deadline = time.monotonic() + 60
        while process.poll() is None and set(ranks_of(process)) & set(ranks) and time.monotonic() < deadline:
            time.sleep(0.05)
    return killed


def _ended(process: "subprocess.Popen[bytes]") -> int | None:
    """Return how a run ended, or None if it did not within five minutes, and leave nothing of it behind."""
    try:
        return process.wait(timeout=300)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait(timeout=60)
        return None
