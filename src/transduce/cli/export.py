"""`transduce export`: writes a model in the format of another program, or in our own with smaller weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli.options import ModelName

if TYPE_CHECKING:
    from transduce.model_directory import ModelDirectory

StoredWeights = Literal["float32", "bf16", "int8"]
STORED_AS: dict[str, tuple[StoredWeights, ...]] = {
    "huggingface": ("float32",),
    "ctranslate2": ("float32", "int8"),
    "argos": ("int8", "float32"),
    "firefox": ("int8", "float32"),
    "transduce": ("bf16", "int8", "float32"),
}
"""The number formats of the weights that each format can store; the first is the default."""


def export(
    model: ModelName,
    destination: Annotated[
        Path,
        typer.Argument(
            metavar="DEST", help="The folder or package file to write; it must not exist.", show_default=False
        ),
    ],
    format_name: Annotated[
        Literal["huggingface", "ctranslate2", "argos", "firefox", "transduce"],
        typer.Option(
            "--format",
            help="huggingface: a directory for MarianMTModel, or for Pegasus if the model is pre-norm (as the "
            "bundled one is). ctranslate2: a directory for CTranslate2. argos: a "
            "package for Argos Translate and LibreTranslate, DEST.argosmodel. firefox: a folder for Firefox and "
            "Marian, of a model as they train. transduce: a model directory with smaller weights.",
        ),
    ] = "huggingface",
    weights: Annotated[
        StoredWeights | None,
        typer.Option(
            help="Number format of the weights. huggingface: float32. ctranslate2: float32 or int8. argos: int8 or "
            "float32. firefox: int8 or float32. transduce: bf16, int8 or float32. The first one is the default.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="With --format firefox in int8: some hundred source sentences, one a line, to measure alphas with.",
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="With --format transduce: a Markdown text to put at the top of the model card, such as the licence of "
            "the data and the purpose of the model.",
        ),
    ] = None,
) -> None:
    """Write a model in the format of another program, or with smaller weights."""
    from transduce.errors import ConfigError
    from transduce.files import require_place_for_folder
    from transduce.model_directory import find_model, load_model

    possible = STORED_AS[format_name]
    if weights is not None and weights not in possible:
        raise ConfigError(f"--format {format_name} stores weights as {' or '.join(possible)}, not as {weights}.")
    if card is not None and format_name != "transduce":
        raise ConfigError(f"--card works with --format transduce only, not with {format_name}.")
    chosen = weights or possible[0]
    if samples is not None and (format_name, chosen) != ("firefox", "int8"):
        raise ConfigError("--samples works with --format firefox in int8 only.")
    require_place_for_folder(destination.parent)
    text = card or samples
    words = text.read_text(encoding="utf-8", errors="replace") if text is not None else ""
    typer.echo(_write(load_model(find_model(model)), destination, format_name, chosen, words))


def _write(model: "ModelDirectory", destination: Path, format_name: str, weights: StoredWeights, words: str) -> str:
    """Write the model in one format and return the line to print; `words` are the text of a file that it needs."""
    if format_name == "ctranslate2":
        from transduce.export.ctranslate2 import export_ctranslate2

        difference = export_ctranslate2(model, destination, weights="int8" if weights == "int8" else "float32")
        return (
            f"wrote {destination}; the log-probabilities of CTranslate2 differ from ours by at most {difference:.2g} "
            "(see its README.md)"
        )
    if format_name == "argos":
        from transduce.export.argos import export_argos

        export_argos(model, destination, weights="float32" if weights == "float32" else "int8")
        return f"wrote {destination}; install it with: argospm install {destination}"
    if format_name == "firefox":
        from transduce.export.firefox import export_firefox

        export_firefox(
            model, destination, weights="float32" if weights == "float32" else "int8", samples=words.splitlines()
        )
        return f"wrote {destination}: {', '.join(sorted(path.name for path in destination.iterdir()))}"
    if format_name == "transduce":
        from transduce.export.compact import export_compact

        size = export_compact(model, destination, weights=weights, words=words)
        return f"wrote {destination}: {size / 1e6:,.1f} MB of weights as {weights}"
    from transduce.export.huggingface import export_huggingface

    export_huggingface(model, destination)
    return f"wrote {destination}; layer normalisation uses epsilon 1e-5 there (see its README.md)"
