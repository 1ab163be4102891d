"""`transduce merge`: joins the parts that the shards of a translation wrote."""

from pathlib import Path
from typing import Annotated

import typer


def merge(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The --output of `transduce translate --shard`.", show_default=False)
    ],
    output: Annotated[Path, typer.Option(help="The file to write.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")] = False,
) -> None:
    """Join the parts of all shards into one file, once all are done.

    Every shard must have ended, with the same model and settings and on the same text, and every part must be as it was
    written.
    """
    from transduce.bulk.parts import merge as merge_parts
    from transduce.cli.translate import refuse_to_overwrite
    from transduce.cli.translate_parts import report

    refuse_to_overwrite(output, force=force)
    report(merge_parts(folder, output), str(output))
