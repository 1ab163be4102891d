"""`transduce train`: trains a model on parallel text, and continues a run that was interrupted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import Threads

if TYPE_CHECKING:
    from transduce.pipeline.planning import TrainRequest

CORPUS = (
    "a.en,a.de (two aligned files), or one .tsv, .csv, .jsonl, .po, .tmx or .xlf, or trees (.ptb); each may be .gz, "
    ".xz, .zst or .bz2."
)


def train(
    experiment: Annotated[
        Path | None,
        typer.Argument(help="An experiment file (TOML); `--write-experiment` makes one.", show_default=False),
    ] = None,
    train_text: Annotated[
        list[str] | None, typer.Option("--train", help=f"Training text, repeatable: {CORPUS}")
    ] = None,
    text_file: Annotated[
        list[str] | None,
        typer.Option(help="Plain text for a language model, repeatable, in place of --train; may be compressed."),
    ] = None,
    valid_text: Annotated[
        list[str] | None, typer.Option("--valid", help="Validation text; part of the training text unless given.")
    ] = None,
    test_text: Annotated[
        list[str] | None,
        typer.Option("--test", help="Test text, for `transduce evaluate`; part of the training text unless given."),
    ] = None,
    mixed_text: Annotated[
        list[str] | None,
        typer.Option(
            "--mix",
            help="Other text to mix in, repeatable: an epoch holds as many of its pairs as of --train. With "
            "--start-from, give text like that which the model learned, so that it does not forget it.",
        ),
    ] = None,
    source_language: Annotated[str | None, typer.Option("--from", help="Source language, such as en.")] = None,
    target_language: Annotated[str | None, typer.Option("--to", help="Target language, such as de.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="The run directory. If it holds a run, training continues there.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="tiny, small, base, big, …; chosen by the number of pairs unless given.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="Set any key, repeatable; `transduce settings` lists them."
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(help="Adapt this model: start from its weights and tokenizer, with a schedule for fine-tuning."),
    ] = None,
    threads: Threads = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Prepare the text, estimate the training time, and stop.")
    ] = False,
    write_experiment: Annotated[
        Path | None, typer.Option(help="Write an experiment file with every key explained, and stop.")
    ] = None,
) -> None:
    """Train a model on parallel text (--train), or a language model on plain text (--text-file).

    Needs --output, too; run it again to continue.
    """
    from transduce.errors import ConfigError
    from transduce.files import require_place_for_folder
    from transduce.pipeline.command import request_of

    request = request_of(
        experiment=experiment,
        preset=preset,
        overrides=overrides or (),
        corpora={"train": train_text, "text": text_file, "valid": valid_text, "test": test_text},
        data={
            "source_language": source_language,
            "target_language": target_language,
            "corpora": [{"files": [name], "weight": "equal"} for name in mixed_text or ()],
        },
        training={"threads": threads, "start_from": start_from},
    )
    if write_experiment is not None:
        _write_experiment(request, write_experiment)
        return
    if output is None and experiment is not None:
        output = Path("runs") / experiment.stem
    if output is None:
        raise ConfigError("Name the run directory: --output runs/NAME.")
    require_place_for_folder(output)
    _train(request, output, is_dry=dry_run)


def _train(request: "TrainRequest", output: Path, *, is_dry: bool) -> None:
    from transduce.cli.terminal import terminal_progress
    from transduce.pipeline.command import announce
    from transduce.pipeline.command import train as train_run
    from transduce.training.interruption import StopRequest, stopping_on_signals
    from transduce.training.trainer import Ending

    stop = StopRequest()
    with terminal_progress() as progress:
        if is_dry:
            announce(request, output, progress=progress)
            return
        try:
            result = train_run(
                request,
                output,
                progress=progress,
                stop_requested=lambda: bool(stop),
                while_training=stopping_on_signals(stop),
            )
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
    if result.ending is Ending.STOPPED and stop.signal is not None:
        raise typer.Exit(128 + stop.signal)


def _write_experiment(request: "TrainRequest", path: Path) -> None:
    from transduce.errors import ConfigError
    from transduce.experiment import gather_settings, merged, validate_experiment, write_toml
    from transduce.files import write_atomically

    if path.exists():
        raise ConfigError(f"{path} exists already. Delete it or choose another name.")
    content = gather_settings(request.file, preset=request.preset or "small", overrides=request.overrides)
    experiment = validate_experiment(merged(content, request.sections or {}), where="the settings given")
    write_atomically(path, write_toml(experiment, with_meanings=True))
    typer.echo(f"wrote {path}; edit it, then: transduce train {path} --output runs/{path.stem}")
