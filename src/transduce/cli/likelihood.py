"""`transduce likelihood`: computes the log-probability of given translations, or of text under a language model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import ModelName, SourceLanguage, TargetLanguage, Threads
from transduce.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transduce.data.formats import Pair

_PAIRS_AT_ONCE = 1024


def likelihood(
    model: ModelName,
    pairs: Annotated[
        str,
        typer.Argument(
            help="Sentence pairs: two aligned files a.en,a.de or one .tsv, .csv, .jsonl, .po, .tmx or .xlf. For a "
            "language model: a plain text.",
            show_default=False,
        ),
    ],
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    threads: Threads = None,
    json_output: Annotated[bool, typer.Option("--json", help="Write one JSON object for each pair.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="For a language model: write an HTML page of the text, coloured by surprise.")
    ] = None,
) -> None:
    """Compute log p(target | source) of each pair, as a natural logarithm.

    The output has one line per pair: the sum, a tab, and the log-probability of each piece and of the end token. For a
    language model it is the text, coloured by each token's surprise; with --json, the log-probability of each token.
    """
    from transduce.cli.evaluated_model import open_model
    from transduce.cli.terminal import terminal_progress
    from transduce.data.formats import Corpus, Selection
    from transduce.errors import ConfigError
    from transduce.evaluation.perplexity import TextLikelihood, likelihood_of, total_likelihood
    from transduce.translator.generating import is_language_model

    translator = open_model(model, search={}, threads=threads).translator
    if is_language_model(translator.models[0]):
        from transduce.cli.surprise import show_surprise

        show_surprise(translator, Path(pairs), json_output=json_output, page=page)
        return
    if page is not None:
        raise ConfigError("--page shows the text of a language model; this model translates. Leave it out.")
    own = translator.languages
    selection = Selection(source_language or own.source, target_language or own.target)
    totals: list[TextLikelihood] = []
    with terminal_progress() as progress, progress.stage("likelihood", unit="pairs") as stage:
        for some in _windows(Corpus(pairs, selection).pairs()):
            found = translator.likelihood([(pair.source, pair.target) for pair in some])
            rows = zip(some, found, strict=True)
            totals += [likelihood_of(pair.target, each.log_probabilities) for pair, each in rows]
            for pair, each in zip(some, found, strict=True):
                pieces, row = each.tokens, each.log_probabilities
                typer.echo(_json_line(pair, pieces, row) if json_output else _plain_line(pieces, row))
            totals = [total_likelihood(totals)]
            stage.advance(len(some))
            stage.describe(
                f"perplexity {totals[0].perplexity_per_piece:.2f} per piece, "
                f"{totals[0].perplexity_per_byte:.3f} per byte"
            )


def _windows(pairs: "Iterator[Pair]") -> "Iterator[list[Pair]]":
    from itertools import islice

    used = (pair for pair in pairs if not pair.skipped)
    while some := list(islice(used, _PAIRS_AT_ONCE)):
        yield some


def _plain_line(pieces: "Sequence[str]", row: "Sequence[float]") -> str:
    import math

    values = " ".join(f"{piece}:{value:.4f}" for piece, value in zip(pieces, row, strict=True))
    return f"{math.fsum(row):.6f}\t{shown(values)}"


def _json_line(pair: "Pair", pieces: "Sequence[str]", row: "Sequence[float]") -> str:
    import json
    import math

    content = {
        "line": pair.line,
        "source": pair.source,
        "target": pair.target,
        "log_probability": math.fsum(row),
        "tokens": [{"piece": piece, "log_probability": value} for piece, value in zip(pieces, row, strict=True)],
    }
    return json.dumps(content, ensure_ascii=False)
