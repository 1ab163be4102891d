"""The arguments and options that several commands share, each with one meaning and one help text."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

if TYPE_CHECKING:
    from transduce.decoding.config import DecodingOptions

ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A model directory, a run, or the name of a bundled model.", show_default=False
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of threads; all cores unless given.")]
PrecisionName = Literal["auto", "int8", "bf16", "float32"]
PrecisionOption = Annotated[
    PrecisionName,
    typer.Option(help="Number format of the computation; auto takes the fastest that the processor supports."),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON for scripts.")]

SourceLanguage = Annotated[
    str | None, typer.Option("--from", help="Source language, such as en; the model's unless given.")
]
TargetLanguage = Annotated[
    str | None, typer.Option("--to", help="Target language, such as de; the model's unless given.")
]

Beam = Annotated[
    int | None, typer.Option(min=1, help="Beam width; 1 is greedy search. The model's setting unless given.")
]
LengthPenalty = Annotated[
    float | None, typer.Option(min=0, help="Exponent of the length penalty; the model's setting unless given.")
]
UsesShortlist = Annotated[
    bool | None,
    typer.Option(
        "--shortlist/--no-shortlist",
        help="Search only among the usual translations of the source words; the model's setting unless given.",
    ),
]
UsesConsensus = Annotated[
    bool | None,
    typer.Option(
        "--consensus/--no-consensus",
        help="Take the hypothesis that agrees most with the others instead of the most probable one; the model's "
        "setting unless given.",
    ),
]

GlossaryFile = Annotated[
    Path | None, typer.Option(help="Terms and their translations: two columns in a .tsv, .csv or .jsonl file.")
]
KeepPlaceholders = Annotated[
    Literal["enforce", "report", "off"] | None,
    typer.Option(
        help="If a translation lacks a placeholder, URL, tag or number of its source: enforce searches again for one "
        "that has them, and leaves a document's segment untranslated if there is none; report only says so; off does "
        "not look. The model's setting unless given, which is usually enforce."
    ),
]
TermsMode = Literal["enforced", "preferred"]
Terms = Annotated[
    TermsMode,
    typer.Option(
        help="enforced: the translation must contain the glossary's terms. preferred: the search takes the "
        "hypothesis that contains most of them."
    ),
]


def given_options(options: Mapping[str, object]) -> "DecodingOptions":
    """Return the search options that are not None; for the others the model's settings apply."""
    return cast("DecodingOptions", {name: value for name, value in options.items() if value is not None})
