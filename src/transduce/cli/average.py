"""`transduce average`: averages the newest checkpoints of a run (section 6.1)."""

from pathlib import Path
from typing import Annotated

import typer


def average(
    run: Annotated[Path, typer.Argument(help="A run directory made by `transduce train`.")],
    last: Annotated[int, typer.Option(min=1, help="How many of the newest checkpoints to average.")] = 5,
) -> None:
    """Average the newest checkpoints of a run into its model (section 6.1)."""
    from transduce.pipeline.averaging import average_run

    steps = average_run(run, last=last)
    typer.echo(f"averaged the checkpoints of steps {', '.join(f'{step:,}' for step in steps)} into {run / 'model'}")
