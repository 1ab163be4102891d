"""`transduce train`: parallel text in, a model directory out, and nothing lost in between."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from transduce.pipeline.planning import Choice, Request
    from transduce.pipeline.run import Finished
    from transduce.progress import Progress

CORPUS = (
    "a.en,a.de (two aligned files), or one .tsv, .csv, .jsonl, .po, .tmx or .xlf; each may be .gz, .xz, .zst or .bz2."
)


def train(
    experiment: Annotated[
        Path | None,
        typer.Argument(help="An experiment file (TOML); `--write-experiment` makes one.", show_default=False),
    ] = None,
    train_text: Annotated[
        list[str] | None, typer.Option("--train", help=f"Training text, repeatable: {CORPUS}")
    ] = None,
    valid_text: Annotated[
        list[str] | None, typer.Option("--valid", help="Validation text; held out of the training text unless given.")
    ] = None,
    test_text: Annotated[
        list[str] | None, typer.Option("--test", help="Test text, kept aside and scored by `evaluate`.")
    ] = None,
    source_language: Annotated[str | None, typer.Option("--from", help="Source language, such as en.")] = None,
    target_language: Annotated[str | None, typer.Option("--to", help="Target language, such as de.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="The run directory. If it holds a run, training goes on where it stopped.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="tiny, small, base, big, …; chosen by the size of the corpus unless given.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Set any key; `transduce settings` lists them."),
    ] = None,
    start_from: Annotated[
        str | None, typer.Option(help="Begin with the weights and tokenizer of this model, with a fresh optimizer.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads to compute with; all cores unless given.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Prepare, say what training will take, and stop.")] = False,
    write_experiment: Annotated[
        Path | None, typer.Option(help="Write the experiment to this file, every key explained, and stop.")
    ] = None,
) -> None:
    """Learn to translate from parallel text. Only --train and --output are needed; run it again to go on."""
    from transduce.cli.terminal import terminal_progress
    from transduce.errors import ConfigError
    from transduce.pipeline.planning import Request

    sections = _sections(
        train=train_text,
        valid=valid_text,
        test=test_text,
        source_language=source_language,
        target_language=target_language,
        threads=threads,
        start_from=start_from,
    )
    request = Request(file=experiment, preset=preset, overrides=tuple(overrides or ()), sections=sections)
    if write_experiment is not None:
        _write_experiment(request, write_experiment)
        return
    if output is None and experiment is not None:
        output = Path("runs") / experiment.stem
    if output is None:
        raise ConfigError("Say where the run shall live: --output runs/NAME.")
    with terminal_progress() as progress:
        code = _run(request, output, progress, dry_run=dry_run)
    if code:
        raise typer.Exit(code)


def _run(request: "Request", output: Path, progress: "Progress", *, dry_run: bool) -> int:
    """Train and return the exit code: 130 or 143 when a signal stopped it."""
    from transduce.pipeline.estimate import announcement
    from transduce.pipeline.planning import choose_experiment
    from transduce.pipeline.run import opened_run
    from transduce.training.interruption import stopping_on_signals

    choice = choose_experiment(request, output, progress=progress)
    try:
        with opened_run(choice, output, progress=progress) as run:
            progress = run.progress
            if not choice.goes_on or dry_run:
                for line in announcement(run):
                    progress.note(line)
            if dry_run:
                return 0
            with stopping_on_signals() as stop:
                finished = run.train(stop_requested=lambda: bool(stop))
            if stop.signal is not None and not finished.averaged:
                progress.note(f"stopped at step {finished.outcome.progress.step:,} and saved. {_how_to_go_on(output)}")
                return 128 + stop.signal
    except KeyboardInterrupt:
        progress.note(f"stopped at once; everything saved before is whole. {_how_to_go_on(output)}")
        return 130
    _tell(choice, finished, output, progress)
    return 0


def _tell(choice: "Choice", finished: "Finished", output: Path, progress: "Progress") -> None:
    outcome = finished.outcome
    progress.note(f"training ended at step {outcome.progress.step:,}: {outcome.ending.value}")
    steps = ", ".join(f"{step:,}" for step in finished.averaged)
    what = f"the average of steps {steps}" if len(finished.averaged) > 1 else f"step {steps}"
    if finished.validation is not None:
        bleu = f", BLEU {finished.validation.bleu:.1f} (greedy)" if finished.validation.bleu is not None else ""
        what += f", validation perplexity {finished.validation.perplexity:.2f}{bleu}"
    progress.note(f"model: {finished.model} ({what})")
    progress.note(f"report: {finished.report}")
    progress.note(f'next: transduce translate {output} --text "…"')


def _how_to_go_on(output: Path) -> str:
    return f"Go on with: transduce train --output {output}"


def _sections(*, threads: int | None, start_from: str | None, **data: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401
    sections = {"data": data, "training": {"threads": threads, "start_from": start_from}}
    given = {name: {key: value for key, value in keys.items() if value} for name, keys in sections.items()}
    return {name: keys for name, keys in given.items() if keys}


def _write_experiment(request: "Request", path: Path) -> None:
    from transduce.errors import ConfigError
    from transduce.experiment import gather_settings, merged, validate_experiment, write_toml
    from transduce.files import write_atomically

    if path.exists():
        raise ConfigError(f"{path} exists already. Delete it or choose another name.")
    content = gather_settings(request.file, preset=request.preset or "small", overrides=request.overrides)
    experiment = validate_experiment(merged(content, request.sections or {}), where="the settings given")
    write_atomically(path, write_toml(experiment, with_meanings=True))
    typer.echo(f"wrote {path}; edit it, then: transduce train {path} --output runs/{path.stem}")
