"""The common part of `transduce train` and `transduce.train`: choose an experiment, open the run, announce, train."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from transduce.errors import ConfigError
from transduce.experiment import merged
from transduce.pipeline.estimate import announcement
from transduce.pipeline.planning import TrainRequest, choose_experiment, has_learned
from transduce.pipeline.run import TrainingResult, opened_run
from transduce.pipeline.stages import StopRequested
from transduce.progress import Progress, Silent
from transduce.training.trainer import Ending

CorpusNames = str | Path | Sequence[str | Path]
"""One corpus or several: a file of pairs, or two aligned files as "a.en,a.de"."""


def request_of(
    *,
    experiment: Path | None = None,
    preset: str | None = None,
    overrides: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    corpora: Mapping[str, CorpusNames | None] | None = None,
    data: Mapping[str, object] | None = None,
    training: Mapping[str, object] | None = None,
) -> TrainRequest:
    """Return the request that these arguments describe; None and empty lists set nothing.

    `overrides` and `settings` set any key ("training.steps=100", {"training.steps": 100}). `data` and `training` set
    keys of their sections, and `corpora` sets `train`, `valid` and `test` of the section `data`.
    """
    named = {split: _names(given) for split, given in (corpora or {}).items()}
    sections = {"data": {**named, **(data or {})}, "training": dict(training or {})}
    asked = _sections_of(settings or {})
    for section, keys in sections.items():
        if given := {key: value for key, value in keys.items() if value is not None and value != []}:
            asked = merged(asked, {section: given})
    return TrainRequest(file=experiment, preset=preset, overrides=tuple(overrides), sections=asked)


def train(
    request: TrainRequest,
    output: Path,
    *,
    progress: Progress | None = None,
    stop_requested: StopRequested = lambda: False,
    while_training: AbstractContextManager[object] | None = None,
) -> TrainingResult:
    """Train as requested in `output`, or resume the run that it holds, to the finished model.

    Without `progress` nothing is reported, and the duration of a new run is not estimated. `while_training` is entered
    once the corpus is prepared, for example to handle signals.
    """
    reports = progress or Silent()
    choice = choose_experiment(request, output, progress=reports)
    try:
        with opened_run(choice, output, progress=reports) as run:
            reports = run.progress
            if progress is not None and not has_learned(output):
                for line in announcement(run):
                    reports.note(line)
            with while_training or nullcontext():
                result = run.train(stop_requested=stop_requested)
    except KeyboardInterrupt:
        reports.note(f"stopped at once; everything saved so far is complete. {_how_to_resume(output)}")
        raise
    for line in _result_lines(result, output):
        reports.note(line)
    return result


def announce(request: TrainRequest, output: Path, *, progress: Progress) -> None:
    """Prepare the corpus of the requested run, and report what training will take, without training."""
    choice = choose_experiment(request, output, progress=progress)
    with opened_run(choice, output, progress=progress) as run:
        for line in announcement(run):
            run.progress.note(line)


def _result_lines(result: TrainingResult, output: Path) -> list[str]:
    if result.ending is Ending.STOPPED:
        return [f"stopped at step {result.step:,} and saved. {_how_to_resume(output)}"]
    steps = ", ".join(f"{step:,}" for step in result.averaged)
    what = f"the average of steps {steps}" if len(result.averaged) > 1 else f"step {steps}"
    if result.validation is not None:
        bleu = f", BLEU {result.validation.bleu:.1f} (greedy)" if result.validation.bleu is not None else ""
        what += f", validation perplexity {result.validation.perplexity:.2f}{bleu}"
        if (bits := result.validation.bits_per_character) is not None:
            what += f", loss {result.validation.loss:.3f}, {bits:.3f} bits per character"
    is_language_model = bool(result.validation and result.validation.bits_per_character)
    use = f'generate {output} --prompt "…"' if is_language_model else f'translate {output} --text "…"'
    return [
        f"training ended at step {result.step:,}: {result.ending.value}",
        f"model: {result.model} ({what})",
        f"report: {result.report}",
        f"next: transduce {use}",
    ]


def _how_to_resume(output: Path) -> str:
    return f"Resume with: transduce train --output {output}"


def _names(given: CorpusNames | None) -> list[str]:
    corpora = [given] if isinstance(given, str | Path) else given or ()
    return [str(corpus) for corpus in corpora]


def _sections_of(settings: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    sections: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        section, dot, key = name.partition(".")
        if not dot:
            raise ConfigError(f"settings has the key {name!r}. Write section.key, such as training.steps.")
        sections.setdefault(section, {})[key] = value
    return sections
