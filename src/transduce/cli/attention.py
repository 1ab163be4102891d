"""`transduce attention`: shows the attention weights of every head for one sentence."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import GlossaryFile, ModelName, PrecisionName, Terms, Threads


def attention(
    model: ModelName,
    text: Annotated[str, typer.Argument(help="The sentence to translate and inspect.")],
    target: Annotated[str | None, typer.Option(help="Inspect this translation instead of the model's own.")] = None,
    output: Annotated[Path, typer.Option(help="The HTML page to write; it needs no network.")] = Path("attention.html"),
    json_output: Annotated[bool, typer.Option("--json", help="Write the report as JSON to stdout instead.")] = False,
    numbers: Annotated[
        bool,
        typer.Option("--numbers", help="Add the queries, keys and values of every head for the page's neuron view."),
    ] = False,
    glossary: GlossaryFile = None,
    terms: Terms = "enforced",
    precision: Annotated[
        PrecisionName, typer.Option(help="Number format of the translation; attention is computed in float32.")
    ] = "float32",
    threads: Threads = None,
) -> None:
    """Show the attention weights of every head for one sentence and its translation."""
    from transduce.cli.loading import load_translator
    from transduce.errors import ConfigError
    from transduce.files import write_atomically
    from transduce.translator import Glossary, read_glossary

    if target is not None and glossary is not None:
        raise ConfigError(
            "--glossary has no effect on a translation that you give with --target. Leave one of them out."
        )
    wanted = Glossary(()) if glossary is None else read_glossary(glossary, mode=terms)
    translator = load_translator(model, precision=precision, threads=threads)
    report = translator.attention(text, target=target, numbers=numbers, glossary=wanted)
    if json_output:
        typer.echo(report.to_json())
        return
    write_atomically(output, report.to_html())
    typer.echo(f"{report.target_text}\nwrote {output}: open it in a browser")
    if translator.precision != "float32":
        difference = f"{report.largest_difference:.2g}"
        typer.echo(f"log-probabilities in {translator.precision} and float32 differ by at most {difference}")
