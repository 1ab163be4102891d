"""report.html: one self-contained page with a run's curves, samples, corpus and configuration.

It is written again at each validation. The page is a template with one JSON object in it; its script draws the charts,
and it loads nothing from the network.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files as package_files
from pathlib import Path
from textwrap import indent
from typing import Any

from transduce.experiment import ExperimentConfig
from transduce.files import write_atomically
from transduce.training.metrics import FINAL, METRICS_FILE, Sample, read_metrics
from transduce.training.trainer import Validated

REPORT = "report.html"
SAMPLES_FILE = "samples.jsonl"
_MOST_POINTS = 600
_SAMPLE_STEPS_SHOWN = 4


def validation_line(validated: Validated) -> str:
    """Return the line that reports a validation during training, with one sentence and its translation."""
    validation, progress = validated.validation, validated.progress
    bleu = f", BLEU {validation.bleu:.1f}" if validation.bleu is not None else ""
    best = " (best so far)" if validated.is_best else ""
    bits = validation.bits_per_character
    bleu += "" if bits is None else f", loss {validation.loss:.3f}, {bits:.3f} bits per character"
    line = f"step {progress.step:,}: perplexity {validation.perplexity:.2f}{bleu}{best}"
    if validation.samples:
        sample = validation.samples[0]
        line += "\n" + indent(f"{sample.source}\n→ {sample.translation}", "  ")
    return line


def append_samples(run: Path, step: int, samples: Sequence[Sample]) -> None:
    """Append the sample translations of a validation to samples.jsonl."""
    line = {"step": step, "samples": [[s.source, s.reference, s.translation] for s in samples]}
    with (run / SAMPLES_FILE).open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(line) + "\n")


def write_report(
    run: Path,
    experiment: ExperimentConfig,
    *,
    status: str,
    facts: Sequence[tuple[str, str]],
    data: Mapping[str, Any],
) -> Path:
    """Write the page of a run in its present state, and return its path."""
    metrics = list(read_metrics(run / METRICS_FILE)) if (run / METRICS_FILE).exists() else []
    content = {
        "title": f"{run.name}: {experiment.data.source_language or 'source'} → "
        f"{experiment.data.target_language or 'target'}",
        "status": status,
        "facts": list(facts),
        "curves": _curves(metrics),
        "without_curves": "There are no curves yet: the run has not written metrics.",
        "samples": _samples(run),
        "tables": [
            {"title": "Corpus", "rows": [[key.replace("_", " "), _text(value)] for key, value in data.items()]},
            {"title": "Configuration", "folded": True, "rows": _configuration(experiment)},
        ],
    }
    path = run / REPORT
    write_atomically(path, page_of(content))
    return path


def page_of(content: Mapping[str, Any]) -> str:
    """Return the page with this content: title, status, facts, curves, samples and tables."""
    template = package_files("transduce").joinpath("pipeline/report.html").read_text(encoding="utf-8")
    # "</script>" inside a sentence of the corpus must not end the element that holds the JSON.
    payload = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    return template.replace("/*CONTENT*/", payload, 1)


def _curves(metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    def points(kind: str, key: str) -> list[list[float]]:
        found = [[line["step"], line[key]] for line in metrics if line.get("kind") == kind and key in line]
        return list(_thinned(found))

    def chart(
        title: str, *series: tuple[str, str, str], clip: bool = False, zero: bool = False, log: bool = False
    ) -> dict[str, Any]:
        return {
            "title": title,
            "clip": clip,
            "zero": zero,
            "log": log,
            "series": [{"name": name, "points": points(kind, key)} for name, kind, key in series],
        }

    def with_validation(key: str) -> tuple[tuple[str, str, str], ...]:
        return ("validation", "valid", key), ("finished model", FINAL, key)

    return [
        chart("Loss per token", ("training", "train", "nll"), *with_validation("loss"), clip=True),
        chart("Perplexity", ("training", "train", "perplexity"), *with_validation("perplexity"), log=True),
        {**chart("Validation BLEU (greedy)", *with_validation("bleu"), zero=True), "least": 10},
        chart("Bits per character", *with_validation("bits_per_character"), clip=True),
        chart("Learning rate", ("rate", "train", "learning_rate"), zero=True),
        chart("Target tokens per second", ("tokens per second", "train", "tokens_per_second"), zero=True),
        chart("Gradient norm", ("norm", "train", "gradient_norm"), log=True),
    ]


def _thinned(points: Sequence[list[float]]) -> Iterable[list[float]]:
    if len(points) <= _MOST_POINTS:
        return points
    return [points[place * (len(points) - 1) // (_MOST_POINTS - 1)] for place in range(_MOST_POINTS)]


def _samples(run: Path) -> list[dict[str, Any]]:
    """Return each sample sentence with its translations at a few steps, including the newest."""
    by_step = {int(line["step"]): line["samples"] for line in _read_samples(run)}
    steps = sorted(by_step)
    if not steps:
        return []
    shown = sorted({steps[place * (len(steps) - 1) // max(_SAMPLE_STEPS_SHOWN - 1, 1)] for place in range(4)})
    newest = by_step[steps[-1]]
    return [
        {
            "source": source,
            "reference": reference,
            "outputs": [[step, by_step[step][place][2]] for step in shown if len(by_step[step]) > place],
        }
        for place, (source, reference, _) in enumerate(newest)
    ]


def _read_samples(run: Path) -> Iterable[dict[str, Any]]:
    path = run / SAMPLES_FILE
    return filter(_has_samples, read_metrics(path)) if path.exists() else ()


def _has_samples(line: Mapping[str, Any]) -> bool:
    """Return whether a line is whole: a damaged one is left out of the page."""
    samples = line.get("samples")
    return isinstance(samples, list) and all(
        isinstance(sample, list) and len(sample) == 3 and all(isinstance(text, str) for text in sample)
        for sample in samples
    )


def _configuration(experiment: ExperimentConfig) -> list[list[str]]:
    return [
        [f"{section}.{key}", _text(value)]
        for section, values in experiment.model_dump(mode="json").items()
        for key, value in values.items()
        if value is not None
    ]


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(map(_text, value))
    return str(value)
