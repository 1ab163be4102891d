"""`transduce fill`: shows which tokens may stand where a text has [MASK]."""

from typing import Annotated

import typer

from transduce.cli.options import Threads
from transduce.cli.translate import inputs_of


def fill(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The directory of a text encoder, such as BERT.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files with a text on each line; standard input if none is given."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="A text with [MASK] in place of words, instead of files.")] = None,
    second: Annotated[
        str | None, typer.Option(help="A second text that is read after each, such as the answer to a question.")
    ] = None,
    alternatives: Annotated[int, typer.Option(min=1, help="How many tokens to show for each mask.")] = 5,
    json_output: Annotated[bool, typer.Option("--json", help="Write one JSON object for each text.")] = False,
    threads: Threads = None,
) -> None:
    """Show the most probable tokens for each [MASK] of a text, with a text encoder such as BERT.

    The output has a line for each token: its probability, the token and, where there are several masks, which one.
    """
    inputs = inputs_of(text, files or [])
    import json
    from dataclasses import asdict

    from transduce.cli.loading import load_encoder
    from transduce.errors import shown
    from transduce.translator.lines import LineReader

    encoder = load_encoder(model, threads=threads)
    for each in LineReader(inputs):
        found = encoder.fill(each, second=second, alternatives=alternatives)
        if json_output:
            masks = [[asdict(filling) for filling in fillings] for fillings in found]
            typer.echo(json.dumps({"text": each, "second": second, "masks": masks}, ensure_ascii=False))
            continue
        for number, fillings in enumerate(found, start=1):
            which = f"\tmask {number}" if len(found) > 1 else ""
            for filling in fillings:
                typer.echo(f"{filling.probability:.4f}\t{shown(filling.token)}{which}")
