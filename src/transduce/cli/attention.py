"""`transduce attention`: shows the attention weights of every head, sentence by sentence."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import GlossaryFile, ModelName, PrecisionName, Terms, Threads
from transduce.errors import shown

if TYPE_CHECKING:
    from transduce.inspection.report import AttentionReport
    from transduce.translator import Translator


def attention(
    model: ModelName,
    text: Annotated[
        str | None, typer.Argument(help="The text to translate and inspect, sentence by sentence.", show_default=False)
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Inspect this translation instead; the text is then one sentence.")
    ] = None,
    sentence: Annotated[
        int | None, typer.Option(help="Inspect only this sentence of the text, counted from 1.", min=1)
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="In place of a text: pairs on which to rank the heads by role (position, alignment, …)."),
    ] = None,
    output: Annotated[Path, typer.Option(help="The HTML page to write; it needs no network.")] = Path("attention.html"),
    json_output: Annotated[
        bool, typer.Option("--json", help="Write JSON to stdout instead, one line for each sentence.")
    ] = False,
    numbers: Annotated[
        bool,
        typer.Option("--numbers", help="Add the queries, keys and values of every head for the page's neuron view."),
    ] = False,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Add what the model would predict without each head, one at a time.")
    ] = False,
    beside: Annotated[
        str | None, typer.Option(help="Show this other model beside it, on the same text; both follow your choices.")
    ] = None,
    glossary: GlossaryFile = None,
    terms: Terms = "enforced",
    precision: Annotated[
        PrecisionName, typer.Option(help="Number format of the translation; attention is computed in float32.")
    ] = "float32",
    threads: Threads = None,
) -> None:
    """Show the attention weights of every head for each sentence of a text and its translation."""
    from transduce.cli.head_roles import show_roles
    from transduce.cli.loading import load_translator
    from transduce.errors import ConfigError
    from transduce.files import require_place_for_file, write_atomically
    from transduce.inspection.page import attention_page, beside_page
    from transduce.translator import Glossary, read_glossary

    if (text is None) == (corpus is None):
        raise ConfigError("Give a text to look at, or --corpus with pairs on which to rank the heads.")
    of_a_text = {"--target": target, "--sentence": sentence, "--numbers": numbers, "--ablation": ablation}
    for name, value in {**of_a_text, "--glossary": glossary, "--beside": beside}.items():
        if corpus is not None and value:
            raise ConfigError(f"{name} has no effect with --corpus, which ranks heads on given pairs. Leave it out.")
    for name, value in (("--glossary", glossary), ("--sentence", sentence)):
        if target is not None and value is not None:
            raise ConfigError(
                f"{name} has no effect on a translation that you give with --target. Leave one of them out."
            )
    if beside is not None and json_output:
        raise ConfigError("--beside makes a page; with --json there is none. Leave one of them out.")
    if not json_output:
        require_place_for_file(output)
    wanted = Glossary(()) if glossary is None else read_glossary(glossary, mode=terms)
    translator = load_translator(model, precision=precision, threads=threads)
    if corpus is not None:
        show_roles(translator, corpus, output, json_output=json_output)
        return
    assert text is not None

    def reports_of(translator: "Translator", text: str) -> "list[AttentionReport]":
        if target is None and sentence is None:
            reports = translator.attention_by_sentence(text, numbers=numbers, glossary=wanted)
        else:
            reports = [translator.attention(text, target=target, sentence=sentence, numbers=numbers, glossary=wanted)]
        if not ablation:
            return reports
        from transduce.inspection.ablation import with_ablation

        network, tokenizer = translator.models[0].read_again().network(), translator.tokenizers.target
        return [with_ablation(report, network, tokenizer) for report in reports]

    reports = reports_of(translator, text)
    if json_output:
        typer.echo("\n".join(report.to_json() for report in reports))
        return
    page = attention_page([report.to_dictionary() for report in reports])
    typer.echo("\n".join(shown(report.target_text) for report in reports))
    if beside is not None:
        others = reports_of(load_translator(beside, precision=precision, threads=threads), text)
        typer.echo("\n".join(shown(report.target_text) for report in others))
        page = beside_page([(model, page), (beside, attention_page([report.to_dictionary() for report in others]))])
    write_atomically(output, page)
    choice = "" if len(reports) == 1 else f"; choose one of its {len(reports)} sentences there"
    typer.echo(f"wrote {output}: open it in a browser{choice}")
    if translator.precision != "float32":
        difference = f"{max(report.largest_difference for report in reports):.2g}"
        typer.echo(f"log-probabilities in {translator.precision} and float32 differ by at most {difference}")
