"""A model's card: its training data and settings, its scores, its intended use and limits.

Training writes it to README.md of the model directory, so every copy of the model has it.
"""

import json
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from transduce.experiment import ExperimentConfig
from transduce.machine import Compute, processor_name
from transduce.model_directory import in_card
from transduce.networks.cost import parameter_count
from transduce.training.state import TrainingProgress
from transduce.version import __version__


def write_card(
    experiment: ExperimentConfig,
    compute: Compute,
    *,
    data: Mapping[str, Any],
    steps: Sequence[int],
    progress: TrainingProgress,
    scores: Mapping[str, float],
) -> str:
    """Return the card as Markdown: `data` are the figures of the corpus, `steps` those averaged into the model."""
    sections = {
        "What it is": _identity(experiment, steps),
        "Scores while training": [*_table(scores), "", _SCORES_NOTE],
        "Data": _data_lines(data),
        "Training": _table(_training(compute, progress)),
        "Settings": _settings(experiment),
        "Intended use and limits": [_LIMITS, "", _PRIVACY],
    }
    body = "\n\n".join(f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items())
    languages = (experiment.data.source_language, experiment.data.target_language)
    source, target = (in_card(own or side) for own, side in zip(languages, ("source", "target"), strict=True))
    return f"# {source} → {target}\n\n{body}\n"


def _identity(experiment: ExperimentConfig, steps: Sequence[int]) -> list[str]:
    parameters = parameter_count(experiment.model)
    if len(steps) > 1:
        listed = ", ".join(f"{step:,}" for step in steps)
        made_of = f"the mean of the checkpoints of steps {listed} (section 6.1 of the paper)"
    else:
        made_of = f"the checkpoint of step {steps[0]:,}"
    sentence = (
        f"{experiment.model.title} with {parameters:,} parameters, trained by transduce "
        f"{__version__} on {datetime.now(UTC):%Y-%m-%d}. Its weights are {made_of}."
    )
    return [sentence, "", '    transduce translate THIS_FOLDER --text "…"']


def _training(compute: Compute, progress: TrainingProgress) -> dict[str, object]:
    return {
        "steps": progress.step,
        "epochs": progress.epoch,
        "target tokens seen": progress.tokens,
        "time": f"{progress.seconds / 60:,.1f} minutes",
        "processor": processor_name(),
        "threads": compute.threads,
        "precision": compute.precision,
        "software": f"transduce {__version__}, torch {torch.__version__}, Python {platform.python_version()}",
    }


_LIMITS = (
    "It translates text like the text it was trained on, sentence by sentence. On other domains, on names, numbers and "
    "rare words, and on sentences longer than it has seen, expect errors that read fluently. Have a person check what "
    "matters. It knows nothing of the world beyond its corpus and repeats that corpus' habits and biases."
)
_PRIVACY = (
    "The folder holds no sentence of the corpus. It holds hashes of the training sentences, so that a test set can be "
    "checked against them: a person who has a sentence can find out whether it was in the training text."
)
_SCORES_NOTE = (
    "Validation BLEU here is greedy, on at most 500 sentences, and was looked at while training: report what "
    "`transduce evaluate` gives on a test set instead."
)


def _data_lines(data: Mapping[str, Any]) -> list[str]:
    lines = _table(
        {key.replace("_", " "): value for key, value in data.items() if isinstance(value, int | float | str)}
    )
    files = data.get("files", [])
    if files:
        lines += ["", "| file | bytes | SHA-256 |", "|---|---|---|"]
        lines += [f"| {in_card(str(f.get('name')))} | {f.get('bytes', 0):,} | `{f.get('sha256')}` |" for f in files]
    return lines


def _settings(experiment: ExperimentConfig) -> list[str]:
    lines = ["```toml"]
    for section in ("model", "training", "decoding"):
        values: dict[str, Any] = getattr(experiment, section).model_dump(mode="json")
        if values.get("start_from"):  # a card is published, so it must not hold the path on its author's disk
            values["start_from"] = "/".join(Path(values["start_from"]).parts[-2:])
        lines += [
            f"[{section}]",
            *(f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None),
        ]
    return [*lines, "```"]


def _table(values: Mapping[str, object]) -> list[str]:
    rows: Sequence[str] = [f"| {name} | {_cell(value)} |" for name, value in values.items()]
    return ["| | |", "|---|---|", *rows]


def _cell(value: object) -> str:
    return (
        f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else in_card(str(value))
    )
