"""A whole run, small enough to be killed a thousand times: prepare, train, validate, save, prune, average.

It runs in children of a process that has imported torch once, so that a start costs milliseconds, or through the
command line as a user would start it.
"""

import hashlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from transduce.errors import TransduceError
from transduce.pipeline.planning import Choice, TrainRequest, choose_experiment
from transduce.pipeline.run import opened_run
from transduce.progress import Silent

SOURCE = Path(__file__).parents[2] / "src"
SETTINGS: dict[str, str | int | float] = {
    "training.steps": 12,
    "training.validate_every": 4,
    "training.checkpoint_every": 2,
    "training.keep_checkpoints": 3,
    "training.average_last": 3,
    "training.batch_tokens": 160,
    "training.micro_batch_tokens": 100,
    "training.precision": "float32",
    "training.bpe_dropout": 0.1,
    "training.report_every": 2,
    "data.held_out_valid": 2,
    "data.held_out_test": 1,
    "model.dropout": 0.2,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.layers": 1,
    "model.vocabulary_size": 400,
}
FINISHED, REFUSED, BROKEN = 0, 2, 1
"""How a child ends: well, with an error that a user can cure, or with a bug."""


def write_text(folder: Path) -> Path:
    """Write parallel text to train on, and return its path."""
    from transduce.demo import write_corpus

    write_corpus(folder, pairs=120, held_out=8)
    return folder / "train.tsv"


Settings = Mapping[str, str | int | float]


def overrides(settings: Settings | None = None) -> list[str]:
    """Return the run's settings as `--set` takes them, some of them changed."""
    return [f"{key}={value}" for key, value in {**SETTINGS, **(settings or {})}.items()]


def command(corpus: Path, output: Path, *, settings: Settings | None = None) -> list[str]:
    """Return the command line of the run, some of its settings changed."""
    return [
        *(sys.executable, "-m", "transduce", "train", "--preset", "tiny", "--threads", "1"),
        *("--train", str(corpus), "--output", str(output)),
        *(f"--set={setting}" for setting in overrides(settings)),
    ]


def environment() -> dict[str, str]:
    """Return the environment in which the command finds the package."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}


def chosen(corpus: Path, output: Path, *, settings: Settings | None = None) -> Choice:
    """Return the experiment of the run."""
    sections: dict[str, dict[str, Any]] = {"data": {"train": [str(corpus)]}, "training": {"threads": 1}}
    request = TrainRequest(preset="tiny", overrides=overrides(settings), sections=sections)
    return choose_experiment(request, output, progress=Silent())


def train(corpus: Path, output: Path, *, settings: Settings | None = None) -> None:
    """Train in this process, from wherever the run stands to its end."""
    torch.set_num_threads(1)
    with opened_run(chosen(corpus, output, settings=settings), output, progress=Silent()) as run:
        run.train(stop_requested=lambda: False)


def stop_after(calls: int) -> Callable[[], bool]:
    """Return a request to stop that comes at the so-manieth question."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


def forked(work: Callable[[], None], *, complaints: Path) -> int:
    """Run `work` in a child and return its process id; how it ends is its exit code, what it said is in a file."""
    process = os.fork()
    if process:
        return process
    code = BROKEN
    try:
        work()
        code = FINISHED
    except TransduceError as fault:
        code = REFUSED
        complaints.write_text(str(fault), encoding="utf-8")
    except BaseException:
        complaints.write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(code)


def ended(process: int) -> int:
    """Wait for a child; return its exit code, negative for the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def fingerprint(run: Path) -> dict[str, str]:
    """Return the SHA-256 of everything that a finished run must have to the bit: weights, averages, optimizer."""
    files = [
        run / "model/weights.safetensors",
        run / "model/tokenizer.model",
        *sorted((run / "checkpoints").glob("step-????????/*.safetensors")),
        *sorted((run / "teachers").glob("*/model/weights.safetensors")),
        *sorted((run / "teachers").glob("corpus/*.values")),
    ]
    return {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def difference(run: Path, expected: dict[str, str]) -> list[str]:
    """Return the files that are missing, too many or other than expected."""
    found = fingerprint(run)
    return sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
