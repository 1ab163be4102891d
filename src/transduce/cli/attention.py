"""`transduce attention`: look at what every head did."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def attention(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model directory, a run, or a bundled model's name.")],
    text: Annotated[str, typer.Argument(help="One sentence to translate and look into.")],
    target: Annotated[str | None, typer.Option(help="Look at this translation instead of the model's own.")] = None,
    output: Annotated[Path, typer.Option(help="The page to write; it opens from disk and asks for nothing.")] = Path(
        "attention.html"
    ),
    json_output: Annotated[bool, typer.Option("--json", help="Write the report as JSON to stdout instead.")] = False,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Add every head's q, k and v, which the page's neuron view needs.")
    ] = False,
    glossary: Annotated[
        Path | None, typer.Option(help="Terms that the translation is to have, as in translate.")
    ] = None,
    terms: Annotated[
        Literal["enforced", "preferred"], typer.Option(help="How far the glossary goes, as in translate.")
    ] = "enforced",
    precision: Annotated[
        Literal["auto", "int8", "bf16", "float32"],
        typer.Option(help="What to translate in; attention is shown in float32."),
    ] = "float32",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; all cores unless given.")] = None,
) -> None:
    """Show what every attention head did for one sentence and its translation."""
    from transduce.errors import ConfigError
    from transduce.files import write_atomically
    from transduce.translator import Glossary, Translator, read_glossary

    if target is not None and glossary is not None:
        raise ConfigError("Give --target, the translation to look at, or --glossary, to have one found.")
    wanted = Glossary(()) if glossary is None else read_glossary(glossary, mode=terms)
    translator = Translator.load(model, precision=precision, threads=threads)
    report = translator.attention(text, target=target, numbers=numbers, glossary=wanted)
    if json_output:
        typer.echo(report.to_json())
        return
    write_atomically(output, report.to_html())
    typer.echo(f"{report.target_text}\nwrote {output}: open it in a browser")
    if translator.precision != "float32":
        typer.echo(
            f"{translator.precision} and float32 differ by at most {report.largest_difference:.2g} in log-probability"
        )
