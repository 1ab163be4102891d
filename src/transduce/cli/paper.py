"""`transduce paper`: shows the paper's tables and claims beside what is counted and measured here."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli.options import Json

if TYPE_CHECKING:
    from transduce.paper import Row
    from transduce.paper.experiments import Measured

TableName = Literal["table1", "table2", "table3", "table4", "figures", "claims"]


def paper(
    table: Annotated[
        TableName, typer.Argument(help="A table, Figures 3 to 5, or all claims that have an experiment.")
    ] = "claims",
    run: Annotated[
        bool, typer.Option("--run", help="Train the experiments of this table here first; run it again to continue.")
    ] = False,
    train_text: Annotated[
        str | None,
        typer.Option("--train", help="Training text for --run; the corpus of the demo unless given."),
    ] = None,
    valid_text: Annotated[str | None, typer.Option("--valid", help="Validation text, together with --train.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds each experiment has.")] = 1,
    budget: Annotated[str, typer.Option(help="The time that --run may take, such as 30m or 2h.")] = "30m",
    output: Annotated[Path, typer.Option(help="The folder of the experiments' runs.")] = Path("runs/paper"),
    html: Annotated[
        Path | None, typer.Option(help="Write one page with all tables, claims and curves to this file.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Show the paper's printed values beside what is counted from our networks and what was measured."""
    import json

    from transduce.files import write_atomically
    from transduce.paper import paper_page, rows_of

    measured = None
    if run:
        measured = _run(table, output, texts=(train_text, valid_text), seeds=seeds, budget=budget)
    if html is not None:
        write_atomically(html, paper_page(measured))
        typer.echo(f"wrote {html}", err=True)
        return
    rows = rows_of(table, measured)
    if json_output:
        typer.echo(json.dumps([row.as_json() for row in rows], indent=2, ensure_ascii=False))
    else:
        _draw(table, rows)


def _run(
    table: TableName, output: Path, *, texts: tuple[str | None, str | None], seeds: int, budget: str
) -> "dict[str, Measured]":
    from transduce.cli.terminal import terminal_progress
    from transduce.demo import write_corpus
    from transduce.errors import ConfigError
    from transduce.files import require_place_for_folder
    from transduce.paper import ClaimRunner, claims
    from transduce.training.config import is_duration, seconds
    from transduce.training.interruption import StopRequest, stopping_on_signals

    chosen = [claim for claim in claims() if table in ("claims", claim.table)]
    if not chosen:
        raise ConfigError(f"{table} has no experiment to run. `transduce paper claims --run` runs those that exist.")
    if not is_duration(budget):
        raise ConfigError(f"--budget {budget} is not a time. Write a number and a unit, such as 30m or 2h.")
    require_place_for_folder(output)
    train_text, valid_text = texts
    if (train_text is None) != (valid_text is None):
        raise ConfigError("Give --train and --valid together, or neither for the corpus of the demo.")
    if train_text is None:
        write_corpus(output / "demo", pairs=20_000)
        train_text, valid_text = str(output / "demo" / "train.tsv"), str(output / "demo" / "valid.tsv")
    stop, measured = StopRequest(), {}
    with terminal_progress() as progress, stopping_on_signals(stop):
        runner = ClaimRunner(
            output,
            corpora={"train": train_text, "valid": str(valid_text)},
            seeds=seeds,
            budget=seconds(budget),
            progress=progress,
        )
        for claim in chosen:
            measured.update(runner.run(claim, stop_requested=lambda: bool(stop)))
    return measured


def _draw(table: str, rows: "list[Row]") -> None:
    from rich.console import Console
    from rich.table import Table

    from transduce.paper import measured_text

    drawn = Table(title=f"Attention Is All You Need, {table}", title_justify="left", box=None)
    for column in ("claim", "printed", "counted or measured here"):
        drawn.add_column(column, overflow="fold")
    reasons = sorted({row.not_measured for row in rows if row.not_measured and row.measured is None})
    for row in rows:
        here = "" if row.counted is None else f"{row.counted:,}" if isinstance(row.counted, float) else row.counted
        if row.measured is not None:
            here = measured_text(row.measured)
        elif row.expected:
            here = f"expected: {row.expected}"
        drawn.add_row(row.claim, "" if row.printed is None else str(row.printed), here)
    console = Console()
    console.print(drawn)
    for reason in reasons:
        console.print(f"Not measured: {reason}.", soft_wrap=True)
