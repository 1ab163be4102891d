"""`transduce attention`: shows the attention weights of every head, sentence by sentence."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import GlossaryFile, ModelName, PrecisionName, Terms, Threads
from transduce.errors import shown


def attention(
    model: ModelName,
    text: Annotated[str, typer.Argument(help="The text to translate and inspect, sentence by sentence.")],
    target: Annotated[
        str | None,
        typer.Option(
            help="Inspect this translation instead; the text is then one sentence. For a text encoder such as BERT: a "
            "second text, which is read with the first."
        ),
    ] = None,
    sentence: Annotated[
        int | None, typer.Option(help="Inspect only this sentence of the text, counted from 1.", min=1)
    ] = None,
    output: Annotated[Path, typer.Option(help="The HTML page to write; it needs no network.")] = Path("attention.html"),
    json_output: Annotated[
        bool, typer.Option("--json", help="Write JSON to stdout instead, one line for each sentence.")
    ] = False,
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
    """Show the attention weights of every head for each sentence of a text and its translation."""
    from transduce.architectures import is_text_encoder
    from transduce.cli.loading import load_encoder, load_translator
    from transduce.errors import ConfigError
    from transduce.files import require_place_for_file, write_atomically
    from transduce.inspection.page import attention_page
    from transduce.model_directory import find_model, read_description
    from transduce.translator import Glossary, read_glossary

    for name, value in (("--glossary", glossary), ("--sentence", sentence)):
        if target is not None and value is not None:
            raise ConfigError(
                f"{name} has no effect on a translation that you give with --target. Leave one of them out."
            )
    if not json_output:
        require_place_for_file(output)
    used = "float32"
    if is_text_encoder(read_description(find_model(model)).architecture):
        if glossary is not None or sentence is not None:
            raise ConfigError("--glossary and --sentence are for translations; this model is a text encoder.")
        encoder = load_encoder(model, threads=threads)
        texts = [line for line in text.splitlines() if line.strip()] if target is None else [text]
        reports = [encoder.attention(each, second=target, numbers=numbers) for each in texts]
    else:
        wanted = Glossary(()) if glossary is None else read_glossary(glossary, mode=terms)
        translator = load_translator(model, precision=precision, threads=threads)
        used = translator.precision
        if target is None and sentence is None:
            reports = translator.attention_by_sentence(text, numbers=numbers, glossary=wanted)
        else:
            reports = [translator.attention(text, target=target, sentence=sentence, numbers=numbers, glossary=wanted)]
    if json_output:
        typer.echo("\n".join(report.to_json() for report in reports))
        return
    write_atomically(output, attention_page([report.to_dictionary() for report in reports]))
    choice = "" if len(reports) == 1 else f"; choose one of its {len(reports)} sentences there"
    typer.echo("\n".join(shown(report.target_text or report.source.text.replace("\n", " ")) for report in reports))
    typer.echo(f"wrote {output}: open it in a browser{choice}")
    if used != "float32":
        difference = f"{max(report.largest_difference for report in reports):.2g}"
        typer.echo(f"log-probabilities in {used} and float32 differ by at most {difference}")
