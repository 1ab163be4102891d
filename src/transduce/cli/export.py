"""`transduce export`: a model in other people's formats, or smaller in our own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from transduce.model_directory import ModelDirectory

Weights = Literal["float32", "bf16", "int8"]
STORED_AS: dict[str, tuple[Weights, ...]] = {
    "huggingface": ("float32",),
    "ctranslate2": ("float32", "int8"),
    "argos": ("int8", "float32"),
    "transduce": ("bf16", "int8", "float32"),
}
"""How weights may be stored in each format; the first unless the user says."""


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model directory, a run, or a bundled model's name.")],
    destination: Annotated[
        Path, typer.Argument(metavar="DEST", help="The folder, or package, to write; it must not exist.")
    ],
    format_name: Annotated[
        Literal["huggingface", "ctranslate2", "argos", "transduce"],
        typer.Option(
            "--format",
            help="huggingface: a directory for MarianMTModel. ctranslate2: for its Translator. argos: a package for "
            "Argos Translate and LibreTranslate, DEST.argosmodel. transduce: our own, "
            "with smaller weights.",
        ),
    ] = "huggingface",
    weights: Annotated[
        Weights | None,
        typer.Option(
            help="How weights are stored: float32 in huggingface; float32 or int8 in ctranslate2; int8 or "
            "float32 in argos; bf16, int8 or "
            "float32 in transduce. The first unless given.",
            show_default=False,
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="With --format transduce: words of yours for the model's card, Markdown, set before what training "
            "wrote there: whose the data is, what the model is good for.",
        ),
    ] = None,
) -> None:
    """Write a model as other programs read it, or smaller."""
    from transduce.errors import ConfigError
    from transduce.model_directory import find_model, load_model

    possible = STORED_AS[format_name]
    if weights is not None and weights not in possible:
        raise ConfigError(f"--format {format_name} stores weights as {' or '.join(possible)}, not as {weights}.")
    if card is not None and format_name != "transduce":
        raise ConfigError(f"--card goes with --format transduce; {format_name} has no card of that kind.")
    words = card.read_text(encoding="utf-8") if card is not None else ""
    typer.echo(_write(load_model(find_model(model)), destination, format_name, weights or possible[0], words))


def _write(model: "ModelDirectory", destination: Path, format_name: str, weights: Weights, words: str) -> str:
    """Write the model in one format, and return what to tell of it."""
    if format_name == "ctranslate2":
        from transduce.export.ctranslate2 import export_ctranslate2

        difference = export_ctranslate2(model, destination, weights="int8" if weights == "int8" else "float32")
        return (
            f"wrote {destination}: CTranslate2 loads it, and its log-probabilities differ from ours by at most "
            f"{difference:.2g}; see its README.md"
        )
    if format_name == "argos":
        from transduce.export.argos import export_argos

        export_argos(model, destination, weights="float32" if weights == "float32" else "int8")
        return f"wrote {destination}: argospm install {destination}, or LibreTranslate's folder of packages"
    if format_name == "transduce":
        from transduce.export.compact import export_compact

        size = export_compact(model, destination, weights=weights, words=words)
        return f"wrote {destination}: {size / 1e6:,.1f} MB of weights as {weights}"
    from transduce.export.huggingface import export_huggingface

    export_huggingface(model, destination)
    return f"wrote {destination}: layer normalisation always has epsilon 1e-5 there; see its README.md"
