"""`transduce export`: a model in other people's formats."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model directory, a run, or a bundled model's name.")],
    destination: Annotated[Path, typer.Argument(metavar="DEST", help="The folder to write; it must not exist.")],
    format_name: Annotated[
        Literal["huggingface"], typer.Option("--format", help="huggingface: a directory for MarianMTModel.")
    ] = "huggingface",
) -> None:
    """Write a model as other programs read it."""
    from transduce.export.huggingface import export_huggingface
    from transduce.model_directory import find_model, load_model

    export_huggingface(load_model(find_model(model)), destination)
    typer.echo(f"wrote {destination}: layer normalisation has epsilon 1e-5 there, and 1e-6 here; see its README.md")
