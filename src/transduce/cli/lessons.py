"""`transduce lessons`: copies eight notebooks to work in."""

from pathlib import Path
from typing import Annotated

import typer


def lessons(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put the notebooks; it is made if missing.")],
) -> None:
    """Copy eight short notebooks, from the softmax to BLEU, with exercises that check themselves."""
    from transduce.learning.copying import copy_lessons

    written, kept = copy_lessons(folder)
    for place in written:
        typer.echo(f"wrote {place}")
    for place in kept:
        typer.echo(f"kept {place}, which was there")
    typer.echo("Open them in Jupyter with jupytext, in an editor that knows # %% cells, or run one: python NOTEBOOK.")
