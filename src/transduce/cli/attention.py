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
        str | None,
        typer.Option(
            help="Inspect this translation instead; the text is then one sentence. For a text encoder such as BERT: a "
            "second text, which is read with the first."
        ),
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
    from transduce.architectures import is_text_encoder
    from transduce.cli.loading import load_encoder, load_translator
    from transduce.errors import ConfigError
    from transduce.files import require_place_for_file, write_atomically
    from transduce.inspection.page import beside_page
    from transduce.model_directory import find_model, read_description
    from transduce.translator import Glossary, read_glossary
    from transduce.translator.inspecting import choose_lines

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
    if is_text_encoder(read_description(find_model(model)).architecture):
        of_translations = {"--corpus": corpus, "--sentence": sentence, "--ablation": ablation, "--glossary": glossary}
        for name, value in {**of_translations, "--beside": beside}.items():
            if value:
                raise ConfigError(f"{name} is for models that translate; this model is a text encoder. Leave it out.")
        assert text is not None
        encoder = load_encoder(model, threads=threads)
        texts = choose_lines(text) if target is None else [text]
        _write([encoder.attention(each, second=target, numbers=numbers) for each in texts], output, json_output)
        return
    wanted = Glossary(()) if glossary is None else read_glossary(glossary, mode=terms)
    translator = load_translator(model, precision=precision, threads=threads)
    if corpus is not None:
        from transduce.cli.head_roles import show_roles

        show_roles(translator, corpus, output, json_output=json_output)
        return

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

    assert text is not None
    reports = reports_of(translator, text)
    if beside is None:
        _write(reports, output, json_output)
    else:
        others = reports_of(load_translator(beside, precision=precision, threads=threads), text)
        pages = [(name, _page(own)) for name, own in ((model, reports), (beside, others))]
        write_atomically(output, beside_page(pages))
        typer.echo(f"{_outputs(reports)}\n{_outputs(others)}\nwrote {output}: open it in a browser")
    if translator.precision != "float32" and not json_output:
        difference = f"{max(report.largest_difference for report in reports):.2g}"
        typer.echo(f"log-probabilities in {translator.precision} and float32 differ by at most {difference}")


def _write(reports: "list[AttentionReport]", output: Path, json_output: bool) -> None:
    """Write the reports as a page, or print them as JSON."""
    from transduce.files import write_atomically

    if json_output:
        typer.echo("\n".join(report.to_json() for report in reports))
        return
    write_atomically(output, _page(reports))
    choice = "" if len(reports) == 1 else f"; choose one of its {len(reports)} sentences there"
    typer.echo(f"{_outputs(reports)}\nwrote {output}: open it in a browser{choice}")


def _page(reports: "list[AttentionReport]") -> str:
    from transduce.inspection.page import attention_page

    return attention_page([report.to_dictionary() for report in reports])


def _outputs(reports: "list[AttentionReport]") -> str:
    return "\n".join(shown(report.target_text or report.source.text.replace("\n", " ")) for report in reports)
