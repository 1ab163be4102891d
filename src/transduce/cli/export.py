"""`transduce export`: a model in other people's formats."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model directory, a run, or a bundled model's name.")],
    destination: Annotated[Path, typer.Argument(metavar="DEST", help="The folder to write; it must not exist.")],
    format_name: Annotated[
        Literal["huggingface", "ctranslate2"],
        typer.Option("--format", help="huggingface: a directory for MarianMTModel. ctranslate2: for its Translator."),
    ] = "huggingface",
    weights: Annotated[
        Literal["float32", "int8"], typer.Option(help="How weights are stored; huggingface has float32 alone.")
    ] = "float32",
) -> None:
    """Write a model as other programs read it."""
    from transduce.errors import ConfigError
    from transduce.model_directory import find_model, load_model

    if format_name == "ctranslate2":
        from transduce.export.ctranslate2 import export_ctranslate2

        difference = export_ctranslate2(load_model(find_model(model)), destination, weights=weights)
        typer.echo(
            f"wrote {destination}: CTranslate2 loads it, and its log-probabilities differ from ours by at most "
            f"{difference:.2g}; see its README.md"
        )
        return
    if weights != "float32":
        raise ConfigError(f"--weights {weights} is for --format ctranslate2. Leave it out for {format_name}.")
    from transduce.export.huggingface import export_huggingface

    export_huggingface(load_model(find_model(model)), destination)
    typer.echo(f"wrote {destination}: layer normalisation has epsilon 1e-5 there, and 1e-6 here; see its README.md")
