"""The claims as experiments: which runs each compares, and how they are measured, resumed and read.

A run is an ordinary training, whose folder resumes, or one of the `studies`, whose finding is one file. Departure: all
are far smaller than the paper's and test the direction of a claim only.
"""

import datetime
import json
import statistics
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from transduce.errors import ConfigError
from transduce.files import write_atomically
from transduce.machine import processor_name
from transduce.paper.finding import Finding, StudyContext
from transduce.paper.texts import Part
from transduce.progress import Progress
from transduce.training.metrics import METRICS_FILE, read_metrics
from transduce.version import __version__


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the runs that test it."""

    name: str
    table: str
    text: str
    expected: str
    """What we expected before the first run."""
    printed: str
    """What the paper prints or says."""
    runs: Mapping[str, Sequence[str]]
    """The settings of each run; a study needs none."""
    settings: Sequence[str] = ()
    """What all runs of this claim set."""
    study: str | None = None
    """The study that measures a run; without one, a run is a training."""
    presets: Mapping[str, str] = field(default_factory=dict)
    """The preset of each run; without any, a run has the common settings."""
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The part of the text that a run uses, as arguments of `Part`; without one, a run uses all of it."""
    not_measured: str | None = None
    """Why this release has no measurement, where there is a reason of its own."""


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
    """Text, machine, date and version or commit."""
    points: list[list[float]] = field(default_factory=list)
    """A curve: x, the mean over seeds, the least and the greatest value."""


def claims() -> list[Claim]:
    """Return every claim that has an experiment, in the order of the paper's tables."""
    return [Claim(**entry) for entry in _read_experiments()["claim"]]


def settings_of(claim: Claim, run: str) -> list[str]:
    """Return all settings of a run."""
    common = [] if claim.presets else _read_experiments()["common"]
    return [*common, *claim.settings, *claim.runs[run]]


def _read_experiments() -> dict[str, Any]:
    return tomllib.loads((package_files("transduce") / "paper" / "experiments.toml").read_text(encoding="utf-8"))


class ClaimRunner:
    """Measures the runs of claims in one folder; trainings with equal settings are done once and shared."""

    def __init__(
        self, folder: Path, *, corpora: Mapping[str, str], seeds: int, budget: float | None, progress: Progress
    ) -> None:
        """Take the text by split (train, valid), the number of seeds, and the seconds that all of it may take."""
        self._folder, self._corpora, self._seeds, self._progress = folder, corpora, seeds, progress
        self._end = None if budget is None else time.monotonic() + budget

    def run(self, claim: Claim, *, stop_requested: Callable[[], bool]) -> dict[str, Measured]:
        """Measure every run of a claim that is not finished, until the budget is spent; return what is measured."""

        def is_over() -> bool:
            return stop_requested() or (self._end is not None and time.monotonic() > self._end)

        measured = {}
        for run in claim.runs:
            findings = {}
            for seed in range(1, self._seeds + 1):
                measure = partial(self._studied if claim.study else self._trained, claim, run, seed=seed)
                if found := measure(is_over=is_over):
                    findings[seed] = found
            if findings:
                measured[f"{claim.name}/{run}"] = joined(findings, conditions=self._conditions(claim))
        return measured

    def _conditions(self, claim: Claim) -> str:
        text = "" if claim.study else Path(self._corpora["train"].partition(",")[0]).name
        parts = (text, processor_name(), datetime.date.today().isoformat(), f"transduce {__version__}")
        return ", ".join(part for part in parts if part)

    def _trained(self, claim: Claim, run: str, *, seed: int, is_over: Callable[[], bool]) -> Finding | None:
        from transduce.pipeline.command import request_of, train

        settings, preset = settings_of(claim, run), claim.presets.get(run)
        part = claim.parts.get(run, {})
        output = self._folder / folder_name(settings, seed=seed, preset=preset, part=part)
        if not is_finished(output) and not is_over():
            self._progress.note(f"{claim.text}: {run}, seed {seed}")
            overrides = [*settings, f"training.seed={seed}"]
            texts = self._folder / "texts" / named_part(part)
            corpora = Part(**part).written(self._corpora, texts) if part else self._corpora
            request = request_of(preset=preset, overrides=overrides, corpora=corpora)
            train(request, output, progress=self._progress, stop_requested=is_over)
        return finding_of(output) if is_finished(output) else None

    def _studied(self, claim: Claim, run: str, *, seed: int, is_over: Callable[[], bool]) -> Finding | None:
        from transduce.paper.studies import STUDIES

        path = self._folder / f"{claim.name}-{run}-seed_{seed}.json".replace(" ", "_")
        if path.exists():
            return Finding(**json.loads(path.read_text(encoding="utf-8")))
        if is_over():
            return None
        self._progress.note(f"{claim.text}: {run}, seed {seed}")
        context = StudyContext(self._folder, seed, self._progress, is_over, self._corpora)
        found = STUDIES[str(claim.study)](run, context)
        if found is not None:
            write_atomically(path, json.dumps(asdict(found)))
        return found


def folder_name(
    settings: Sequence[str], *, seed: int, preset: str | None = None, part: Mapping[str, Any] | None = None
) -> str:
    """Return the name of the folder for a run with these settings: those that differ from the common ones."""
    common = set() if preset else set(_read_experiments()["common"])
    changes = [setting.partition(".")[2].replace("=", "_") for setting in settings if setting not in common]
    first = [name for name in (preset, named_part(part or {})) if name]
    return "-".join([*first, *changes] or ["base"]) + f"-seed_{seed}"


def named_part(part: Mapping[str, Any]) -> str:
    """Return the name of a part of the text, empty for the whole."""
    return "-".join(f"{key}_{value}" for key, value in part.items())


def is_finished(run: Path) -> bool:
    """Return whether the run ended and its finished model was validated."""
    return (run / METRICS_FILE).is_file() and any(line["kind"] == "final" for line in read_metrics(run / METRICS_FILE))


def finding_of(run: Path) -> Finding:
    """Read the last validation of a finished run, without averaging as in Table 3, and of the averaged model."""
    lines = list(read_metrics(run / METRICS_FILE))
    validations = [line for line in lines if line["kind"] == "valid"]
    if not validations:
        raise ConfigError(f"{run} has no validation. Delete it and run the experiment again.")
    last, final = validations[-1], next(line for line in lines if line["kind"] == "final")
    return Finding(
        number=float(str(last["perplexity"])),
        unit="validation perplexity at the last step",
        also={
            "BLEU (greedy)": float(str(last["bleu"])),
            "perplexity of the averaged checkpoints": float(str(final["perplexity"])),
            "BLEU (greedy) of the averaged checkpoints": float(str(final["bleu"])),
        },
        points=[[float(str(line["step"])), float(str(line["perplexity"]))] for line in validations],
    )


def joined(findings: Mapping[int, Finding], *, conditions: str = "") -> Measured:
    """Return the mean and the range of findings by seed."""
    found = list(findings.values())
    numbers = [each.number for each in found]
    curves = [{point[0]: point[1] for point in each.points} for each in found]
    points = []
    for x in curves[0]:
        heights = [curve[x] for curve in curves if x in curve]
        points.append([x, *(_short(value) for value in (statistics.mean(heights), min(heights), max(heights)))])
    return Measured(
        number=_short(statistics.mean(numbers)),
        seeds=list(findings),
        range=[_short(min(numbers)), _short(max(numbers))],
        unit=found[0].unit,
        also={name: _short(statistics.mean(each.also[name] for each in found)) for name in found[0].also},
        conditions=conditions,
        points=points,
    )


def _short(value: float) -> float:
    return float(f"{value:.4g}")
