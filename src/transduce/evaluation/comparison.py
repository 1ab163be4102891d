"""A comparison of runs: settings that differ, scores, mean and range over seeds, significance, curves.

Runs that differ only in `training.seed` repeat one experiment. The range of their scores shows how much of a gain
chance alone could explain.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from transduce.evaluation.protocols import protocol_named
from transduce.evaluation.record import Evaluation
from transduce.evaluation.significance import SAMPLES, Difference, paired_bootstrap

SEED = "training.seed"


@dataclass(frozen=True)
class ComparedRun:
    """The settings, evaluations and metrics of one run."""

    name: str
    settings: Mapping[str, object]
    """The resolved experiment by section."""
    evaluations: Sequence[Evaluation] = ()
    metrics: Sequence[Mapping[str, object]] = ()
    """The objects of metrics.jsonl."""


class SettingThatDiffers(BaseModel, frozen=True, extra="forbid"):
    """One setting and its value in each run; None where a run has no such setting."""

    key: str
    values: tuple[object, ...]


class ScoreRow(BaseModel, frozen=True, extra="forbid"):
    """One score of one test set and its value in each run; None where a run has no such score."""

    test: str
    name: str
    signature: str
    values: tuple[float | None, ...]


class SeedSpread(BaseModel, frozen=True, extra="forbid"):
    """One score over runs that differ only in their seed."""

    test: str
    name: str
    runs: tuple[str, ...]
    mean: float
    lowest: float
    highest: float


class RunDifference(BaseModel, frozen=True, extra="forbid"):
    """The difference of one score between a run and the first run, with its significance."""

    test: str
    baseline: str
    system: str
    difference: Difference


class Curve(BaseModel, frozen=True, extra="forbid"):
    """One metric over the steps of one run."""

    run: str
    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


class Comparison(BaseModel, frozen=True, extra="forbid"):
    """The whole comparison; the values of a row are in the order of `runs`."""

    runs: tuple[str, ...]
    settings: tuple[SettingThatDiffers, ...]
    scores: tuple[ScoreRow, ...]
    seeds: tuple[SeedSpread, ...]
    differences: tuple[RunDifference, ...]
    curves: tuple[Curve, ...]


def compare_runs(runs: Sequence[ComparedRun], *, curve_names: Sequence[str], samples: int = SAMPLES) -> Comparison:
    """Compare runs; `curve_names` are metrics such as `valid/loss`, `samples` the draws of the bootstrap."""
    return Comparison(
        runs=tuple(run.name for run in runs),
        settings=settings_that_differ(runs),
        scores=scores_side_by_side(runs),
        seeds=spread_over_seeds(runs),
        differences=differences_from_first(runs, samples=samples),
        curves=curves(runs, curve_names),
    )


def settings_that_differ(runs: Sequence[ComparedRun]) -> tuple[SettingThatDiffers, ...]:
    """Return the settings that are not the same in all runs, by dotted key."""
    flat = [_dotted(run.settings) for run in runs]
    keys = list(dict.fromkeys(key for settings in flat for key in settings))
    rows = [SettingThatDiffers(key=key, values=tuple(settings.get(key) for settings in flat)) for key in keys]
    return tuple(row for row in rows if any(value != row.values[0] for value in row.values))


def scores_side_by_side(runs: Sequence[ComparedRun]) -> tuple[ScoreRow, ...]:
    """Return the newest score of each run for each test set and signature.

    Test sets are the same if their text is, whatever their names. Scores with different signatures are in separate
    rows.
    """
    rows: dict[tuple[str, str, str], list[float | None]] = {}
    names: dict[str, str] = {}
    for place, run in enumerate(runs):
        for (test, _), evaluation in _newest(run).items():
            names.setdefault(test, evaluation.record.test)
            for score in evaluation.record.scores:
                row = rows.setdefault((test, score.name, score.signature), [None] * len(runs))
                row[place] = score.value
    return tuple(
        ScoreRow(test=names[test], name=name, signature=signature, values=tuple(values))
        for (test, name, signature), values in rows.items()
    )


def spread_over_seeds(runs: Sequence[ComparedRun]) -> tuple[SeedSpread, ...]:
    """Return the mean and range of each score over runs that differ only in their seed."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        settings = {key: value for key, value in _dotted(run.settings).items() if key != SEED}
        groups.setdefault(json.dumps(settings, sort_keys=True, default=str), []).append(place)
    spreads = []
    for places in groups.values():
        for row in scores_side_by_side([runs[place] for place in places]):
            scored = {
                runs[place].name: value for place, value in zip(places, row.values, strict=True) if value is not None
            }
            if len(scored) > 1:
                spreads.append(_spread(row, scored))
    return tuple(spreads)


def _spread(row: ScoreRow, scored: Mapping[str, float]) -> SeedSpread:
    values = scored.values()
    return SeedSpread(
        test=row.test,
        name=row.name,
        runs=tuple(scored),
        mean=math.fsum(values) / len(values),
        lowest=min(values),
        highest=max(values),
    )


def differences_from_first(runs: Sequence[ComparedRun], *, samples: int) -> tuple[RunDifference, ...]:
    """Compare every other run with the first by paired bootstrap, on the test sets that both were scored on."""
    if not runs:
        return ()
    first = _newest(runs[0])
    found = []
    for run in runs[1:]:
        for key, evaluation in _newest(run).items():
            if key not in first or not evaluation.references:
                continue
            record = evaluation.record
            differences = paired_bootstrap(
                first[key].hypotheses,
                evaluation.hypotheses,
                evaluation.references,
                protocol=protocol_named(record.protocol, target_language=record.target_language),
                samples=samples,
            )
            found += [
                RunDifference(test=record.test, baseline=runs[0].name, system=run.name, difference=difference)
                for difference in differences
            ]
    return tuple(found)


def curves(runs: Sequence[ComparedRun], names: Sequence[str]) -> tuple[Curve, ...]:
    """Return metrics such as `valid/loss` over the steps of each run that has them.

    A finished run's curve of validations ends with its finished model.
    """
    found = []
    for name in names:
        kind, _, metric = name.partition("/")
        for run in runs:
            points = {
                step: float(value)
                for report in run.metrics
                if (report.get("kind") == kind or (kind == "valid" and report.get("kind") == "final"))
                and isinstance(step := report.get("step"), int)
                and isinstance(value := report.get(metric), int | float)
            }
            if points:
                found.append(Curve(run=run.name, name=name, steps=tuple(points), values=tuple(points.values())))
    return tuple(found)


def _newest(run: ComparedRun) -> dict[tuple[str, str], Evaluation]:
    """Return the newest evaluation of each test set and protocol."""
    newest: dict[tuple[str, str], Evaluation] = {}
    for evaluation in sorted(run.evaluations, key=lambda evaluation: evaluation.record.date):
        record = evaluation.record
        newest[json.dumps(record.data, sort_keys=True), record.protocol] = evaluation
    return newest


def _dotted(settings: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat.update(_dotted(value, prefix=f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
