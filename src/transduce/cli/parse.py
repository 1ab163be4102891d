"""`transduce parse`: a constituency tree for each line of words (section 6.3)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli.options import Beam, LengthPenalty, ModelName, PrecisionOption, Threads, given_options
from transduce.cli.translate import inputs_of, opened_output, refuse_to_overwrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transduce.translator.parsing import ParsedLine

TreeFormat = Literal["brackets", "indented", "svg", "page", "json"]


def parse(
    model: ModelName,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Text files with a sentence per line, its words separated by spaces as in the treebank. Standard "
            "input if none is given, or for -.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Parse this sentence instead of files.")] = None,
    output: Annotated[Path | None, typer.Option(help="The file to write; standard output unless given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")] = False,
    format_name: Annotated[
        TreeFormat,
        typer.Option(
            "--format",
            help="brackets: a tree per line; indented: a bracket per line; json: an object per line; svg: a drawing of "
            "one tree; page: an HTML page that draws all.",
        ),
    ] = "brackets",
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    precision: PrecisionOption = "auto",
    threads: Threads = None,
) -> None:
    """Parse sentences with a model trained on a treebank; every output is a tree over exactly the words given."""
    inputs = inputs_of(text, files or [])
    refuse_to_overwrite(output, force=force)
    from transduce.cli.loading import load_translator
    from transduce.data.portions import in_portions
    from transduce.translator.lines import LineReader
    from transduce.translator.parsing import parse_all

    translator = load_translator(model, precision=precision, threads=threads)
    config = translator.configure(**given_options({"beam": beam, "length_penalty": length_penalty}))
    reader = LineReader(inputs)
    with opened_output(output) as stream:
        if format_name in ("svg", "page"):
            stream.write(_drawing(parse_all(translator, list(reader), config), format_name, title=model))
        else:
            for some in in_portions(reader, len):
                for parsed in parse_all(translator, some, config):
                    stream.write(_lines_of(parsed, format_name) + "\n")
        stream.flush()
    if reader.damaged_lines:
        typer.echo(
            f"transduce: {reader.damaged_lines:,} lines had bytes that are not UTF-8; they became U+FFFD", err=True
        )


def _lines_of(parsed: "ParsedLine | None", format_name: TreeFormat) -> str:
    import json

    from transduce.inspection.tree_drawing import indented_lines

    if format_name == "json":
        return json.dumps(None if parsed is None else parsed.as_json(), ensure_ascii=False)
    if parsed is None:
        return ""
    return parsed.tree.brackets() if format_name == "brackets" else indented_lines(parsed.tree)


def _drawing(lines: "Sequence[ParsedLine | None]", format_name: TreeFormat, *, title: str) -> str:
    from transduce.errors import DataError
    from transduce.inspection.tree_drawing import page_of, svg_of

    trees = [parsed.tree for parsed in lines if parsed is not None]
    if format_name == "page":
        return page_of(trees, title=title)
    if len(trees) != 1:
        raise DataError(f"An SVG holds one tree, and {len(trees)} lines have words. Give one line, or --format page.")
    return svg_of(trees[0]) + "\n"
