"""`transduce compare`: shows runs side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import Json

if TYPE_CHECKING:
    from transduce.evaluation.comparison import ComparedRun

_CURVES = ("valid/loss", "valid/bleu")


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run directories made by `transduce train`.")],
    samples: Annotated[int, typer.Option(help="Resamplings of the significance test.", min=1)] = 1000,
    json_output: Json = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the comparison as a page that needs no network.")
    ] = None,
) -> None:
    """Show runs side by side: settings that differ, scores, spread over seeds, significance, curves."""
    from transduce.cli.comparison_page import comparison_page
    from transduce.cli.comparison_tables import draw_comparison
    from transduce.cli.terminal import SafeConsole, terminal_progress
    from transduce.errors import ConfigError
    from transduce.evaluation.comparison import compare_runs
    from transduce.files import require_place_for_file, write_atomically

    different = list({path.resolve(): path for path in runs}.values())
    if len(different) < 2:
        raise ConfigError("A comparison needs at least two runs: transduce compare runs/a runs/b.")
    if html is not None:
        require_place_for_file(html)
    read = [_read_run(path) for path in different]
    with terminal_progress() as progress, progress.stage("comparing", unit="runs") as stage:
        found = compare_runs(read, curve_names=_CURVES, samples=samples)
        stage.advance(len(read))
    if html is not None:  # before the tables, whose reader may close the pipe
        write_atomically(html, comparison_page(found))
    if json_output:
        typer.echo(found.model_dump_json(indent=2))
    else:
        draw_comparison(SafeConsole(highlight=False), found)
    if html is not None:
        typer.echo(f"wrote {html}: open it in a browser", err=json_output)


def _read_run(path: Path) -> "ComparedRun":
    from transduce.evaluation.comparison import ComparedRun
    from transduce.evaluation.record import read_evaluations
    from transduce.pipeline.planning import read_kept_experiment
    from transduce.training.metrics import METRICS_FILE, read_metrics

    experiment = read_kept_experiment(path)
    metrics = path / METRICS_FILE
    return ComparedRun(
        str(path),
        settings=experiment.model_dump(mode="json"),
        evaluations=read_evaluations(path / "model"),
        metrics=list(read_metrics(metrics)) if metrics.exists() else [],
    )
