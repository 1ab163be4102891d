"""`transduce embed`: writes a vector for each text."""

from typing import Annotated, Literal

import typer

from transduce.cli.options import Threads
from transduce.cli.translate import inputs_of


def embed(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The directory of a text encoder, such as BERT.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files with a text on each line; standard input if none is given."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="A text, instead of files.")] = None,
    pooling: Annotated[
        Literal["mean", "first"],
        typer.Option(help="The mean of the vectors of all tokens, or that of the first, which is [CLS]."),
    ] = "mean",
    threads: Threads = None,
) -> None:
    """Write a vector for each text with a text encoder such as BERT, as a line of JSON."""
    inputs = inputs_of(text, files or [])
    import json

    from transduce.cli.loading import load_encoder
    from transduce.data.portions import in_portions
    from transduce.translator.lines import LineReader

    encoder = load_encoder(model, threads=threads)
    for some in in_portions(LineReader(inputs), len):
        for each, vector in zip(some, encoder.embed(some, pooling=pooling), strict=True):
            typer.echo(json.dumps({"text": each, "embedding": vector.tolist()}, ensure_ascii=False))
