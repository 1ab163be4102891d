"""`transduce back-translate`: learns from text in the target language, too."""

from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.distill import RunFolder, Settings, TestText, TextFiles, ValidText, run_and_compare
from transduce.cli.options import Beam, Json, SourceLanguage, TargetLanguage, Threads, given_options
from transduce.cli.train import CORPUS

if TYPE_CHECKING:
    from typing import Literal


def back_translate(
    text_file: TextFiles,
    train_text: Annotated[list[str], typer.Option("--train", help=f"Real pairs, repeatable: {CORPUS}")],
    output: RunFolder,
    valid_text: ValidText = None,
    test_text: TestText = None,
    reverse_model: Annotated[
        str | None, typer.Option(help="A model from target to source; trained from --train unless given.")
    ] = None,
    beam: Beam = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="The reverse model draws tokens at random instead of beam search.")
    ] = False,
    tag: Annotated[str, typer.Option(help="The mark before each source that the reverse model wrote.")] = ">>bt<<",
    weight: Annotated[
        str,
        typer.Option(
            help="How often an epoch holds each pair that the reverse model wrote: 1 once, 0.25 a quarter of them; "
            "equal: as many pairs as are real."
        ),
    ] = "equal",
    preset: Annotated[
        str | None, typer.Option(help="tiny, small, …; chosen by the number of pairs unless given.")
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    overrides: Settings = None,
    threads: Threads = None,
    json_output: Json = False,
) -> None:
    """Train a model on real pairs and on text in the target language, whose sources a reverse model writes.

    It is trained on both, ends on real pairs alone, and is compared with a model without the text. An interrupted
    command continues.
    """
    from transduce.cli.translate_parts import files_of
    from transduce.pipeline.back_translation import BackTranslation, back_translation_stages
    from transduce.pipeline.command import request_of

    corpora = {"train": train_text, "valid": valid_text or [], "test": test_text or []}
    asked = BackTranslation(
        text=files_of(text_file),
        corpora=corpora,
        real=request_of(preset=preset, overrides=overrides or (), training={"threads": threads}),
        languages=(source_language, target_language),
        reverse_model=reverse_model,
        search=given_options({"beam": beam, "sample": sample or None}),
        weight=_weight(weight),
        tag=tag,
        threads=threads,
    )
    models = {"without": [str(output / "without")], "mixed": [str(output / "mixed")], "finished": [str(output)]}
    run_and_compare(
        lambda context: back_translation_stages(asked, output.absolute(), context),
        output,
        models,
        threads=threads,
        as_json=json_output,
    )


def _weight(given: str) -> "float | Literal['equal']":
    from transduce.errors import ConfigError

    try:
        return "equal" if given == "equal" else float(given)
    except ValueError:
        raise ConfigError(f"--weight {given}: write a number such as 0.5, or equal.") from None
