"""The claims as small trainings: which runs each compares, and how they are run and read.

Each run is an ordinary run directory, so that an interrupted measurement resumes. Departure: the trainings are far
smaller than the paper's and test the direction of a claim only.
"""

import statistics
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from transduce.errors import ConfigError
from transduce.progress import Progress
from transduce.training.metrics import METRICS_FILE, read_metrics


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the runs that test it, each with its settings."""

    name: str
    table: str
    text: str
    expected: str
    """What we expected before the first run."""
    runs: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Measured:
    """The outcome of one run over several seeds: the mean, the seeds, and the least and greatest value."""

    number: float
    seeds: list[int]
    range: list[float]
    unit: str = "validation perplexity at the last step"
    also: dict[str, float] = field(default_factory=dict)
    """Other means of the same runs, by name."""
    conditions: str = ""
    """Text, machine, date and commit."""


def claims() -> list[Claim]:
    """Return every claim that has an experiment, in the order of the paper's tables."""
    return [Claim(**entry) for entry in _read_experiments()["claim"]]


def common_settings() -> list[str]:
    """Return the settings that all experiments share."""
    return list(_read_experiments()["common"])


def _read_experiments() -> dict[str, Any]:
    return tomllib.loads((package_files("transduce") / "paper" / "experiments.toml").read_text(encoding="utf-8"))


class ClaimRunner:
    """Runs the trainings of claims in one folder; runs with equal settings are trained once and shared."""

    def __init__(
        self, folder: Path, *, corpora: Mapping[str, str], seeds: int, budget: float | None, progress: Progress
    ) -> None:
        """Take the text by split (train, valid), the number of seeds, and the seconds that all of it may take."""
        self._folder, self._corpora, self._seeds, self._progress = folder, corpora, seeds, progress
        self._end = None if budget is None else time.monotonic() + budget

    def run(self, claim: Claim, *, stop_requested: Callable[[], bool]) -> dict[str, Measured]:
        """Train every run of a claim that is not finished, until the budget is spent; return what is measured."""
        from transduce.pipeline.command import request_of, train

        def is_over() -> bool:
            return stop_requested() or (self._end is not None and time.monotonic() > self._end)

        measured = {}
        for name, settings in claim.runs.items():
            finished = []
            for seed in range(1, self._seeds + 1):
                output = self._folder / folder_name(settings, seed=seed)
                overrides = [*common_settings(), *settings, f"training.seed={seed}"]
                if not is_finished(output) and not is_over():
                    self._progress.note(f"{claim.text}: {name}, seed {seed}")
                    request = request_of(overrides=overrides, corpora=self._corpora)
                    train(request, output, progress=self._progress, stop_requested=is_over)
                if is_finished(output):
                    finished.append((seed, output))
            if finished:
                measured[f"{claim.name}/{name}"] = measure([seed for seed, _ in finished], [run for _, run in finished])
        return measured


def folder_name(settings: Sequence[str], *, seed: int) -> str:
    """Return the name of the folder for a run with these settings."""
    changes = "-".join(setting.partition(".")[2].replace("=", "_") for setting in settings)
    return f"{changes or 'base'}-seed_{seed}"


def is_finished(run: Path) -> bool:
    """Return whether the run ended and its finished model was validated."""
    return (run / METRICS_FILE).is_file() and any(line["kind"] == "final" for line in read_metrics(run / METRICS_FILE))


def measure(seeds: Sequence[int], runs: Sequence[Path]) -> Measured:
    """Read the last validation of each finished run, without averaging as in Table 3, and of the averaged model."""
    last, averaged = [], []
    for run in runs:
        lines = list(read_metrics(run / METRICS_FILE))
        validations = [line for line in lines if line["kind"] == "valid"]
        if not validations:
            raise ConfigError(f"{run} has no validation. Delete it and run the experiment again.")
        last.append(validations[-1])
        averaged.append(next(line for line in lines if line["kind"] == "final"))

    def mean(of: Sequence[Mapping[str, Any]], key: str) -> float:
        return round(statistics.mean(float(line[key]) for line in of), 3)

    values = [round(float(str(line["perplexity"])), 3) for line in last]
    return Measured(
        number=mean(last, "perplexity"),
        seeds=list(seeds),
        range=[min(values), max(values)],
        also={
            "BLEU (greedy)": mean(last, "bleu"),
            "perplexity of the averaged checkpoints": mean(averaged, "perplexity"),
            "BLEU (greedy) of the averaged checkpoints": mean(averaged, "bleu"),
        },
    )
