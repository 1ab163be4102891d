"""`transduce filter`: throws bad pairs out of a parallel corpus."""

import contextlib
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from transduce.cli.options import Json, SourceLanguage, TargetLanguage, Threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transduce.filtering.config import FilterConfig
    from transduce.filtering.filtering import CorpusFilter
    from transduce.translator import Translator

CorpusName = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help="Two aligned files a.en,a.de or one .tsv, .csv, .jsonl, .po, .tmx or .xlf; may be compressed.",
        show_default=False,
    ),
]


def filter_corpus(
    corpus: CorpusName,
    output: Annotated[Path, typer.Option(help="The clean corpus: a .tsv or .tsv.gz file.", show_default=False)],
    model: Annotated[
        str | None,
        typer.Option(help="A model from source to target; without one, pairs that belong to other pairs stay."),
    ] = None,
    reverse_model: Annotated[
        str | None, typer.Option(help="A model from target to source: likelihood becomes dual cross-entropy.")
    ] = None,
    dropped: Annotated[
        Path | None, typer.Option(help="A .tsv or .tsv.gz file for what is dropped: reason, line, source, target.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="A page with a histogram of each score and the pairs next to its limit.")
    ] = None,
    duplicates: Annotated[
        Literal["exact", "near", "keep"],
        typer.Option(help="near: also pairs that differ in case, spaces, punctuation or digits only."),
    ] = "near",
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="SCORE=LIMIT",
            help="Drop pairs whose score is above LIMIT, or no pair for its score with SCORE=off; repeatable. Scores: "
            "copied (0.8), numbers (0), placeholders (0), length (3.2), likelihood (6.5), ending (0.5), "
            "language (off).",
        ),
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    threads: Threads = None,
    json_output: Json = False,
) -> None:
    """Drop bad pairs of a parallel corpus: misaligned, half missing, copied, duplicate, with other numbers.

    Each pair gets scores and is dropped if one is above its limit. Likelihood and length are compared with what is
    usual in this corpus. The corpus may be larger than the memory.
    """
    import json

    from transduce.cli.terminal import terminal_progress
    from transduce.data.formats import Selection
    from transduce.files import require_place_for_file, write_atomically
    from transduce.filtering.filtering import CorpusFilter
    from transduce.filtering.report import report_as_json, report_page_content
    from transduce.model_directory import Languages
    from transduce.pipeline.report import page_of

    for path in filter(None, (output, dropped, report)):
        require_place_for_file(path)
    config = _config(limits or [], None if duplicates == "keep" else duplicates)
    with terminal_progress() as progress:
        forward, backward = (_model(name, threads) for name in (model, reverse_model))
        own = Languages() if forward is None else forward.languages
        filtering = CorpusFilter(
            corpus,
            Selection(source_language or own.source, target_language or own.target),
            config,
            forward=forward,
            backward=backward,
            progress=progress,
        )
        _write(filtering, output, dropped)
    found = filtering.report
    if report is not None:
        write_atomically(report, page_of(report_page_content(found, title=f"transduce filter: {corpus}")))
    if json_output:
        typer.echo(json.dumps(report_as_json(found)))
        return
    typer.echo(f"{found.kept:,} of {found.read:,} pairs kept in {output}")
    for reason, count in found.dropped.most_common():
        typer.echo(f"{count:>10,} dropped: {reason}")


def _config(limits: "list[str]", duplicates: Literal["exact", "near"] | None) -> "FilterConfig":
    from pydantic import ValidationError

    from transduce.errors import ConfigError
    from transduce.filtering.config import FilterConfig
    from transduce.filtering.filtering import SCORES

    known = [name for name in SCORES if name not in ("empty", "duplicates")]
    chosen: dict[str, float | None] = {}
    for given in limits:
        name, equals, value = given.partition("=")
        if name not in known or not equals:
            raise ConfigError(f"--limit {given}: write SCORE=LIMIT, where SCORE is one of {', '.join(known)}.")
        try:
            chosen[name] = None if value == "off" else float(value)
        except ValueError as fault:
            raise ConfigError(f"--limit {given}: {value!r} is neither a number nor off.") from fault
    try:
        return FilterConfig.model_validate({**chosen, "duplicates": duplicates})
    except ValidationError as fault:
        first = fault.errors()[0]
        raise ConfigError(f"--limit {first['loc'][0]}={first['input']}: {first['msg']}.") from fault


def _model(name: str | None, threads: int | None) -> "Translator | None":
    from transduce.cli.loading import load_translator

    return None if name is None else load_translator(name, precision="auto", threads=threads)


def _write(filtering: "CorpusFilter", output: Path, dropped: Path | None) -> None:
    from transduce.translator.lines import on_one_line

    def row(*cells: object) -> bytes:
        return ("\t".join(on_one_line(str(cell)).replace("\t", " ") for cell in cells) + "\n").encode("utf-8")

    with _opened(output) as kept, contextlib.nullcontext() if dropped is None else _opened(dropped) as rest:
        for verdict in filtering.verdicts():
            pair = verdict.pair
            if verdict.dropped is None:
                kept.write(row(pair.source, pair.target))
            elif rest is not None:
                rest.write(row(verdict.dropped, pair.line, pair.source, pair.target))


@contextlib.contextmanager
def _opened(path: Path) -> "Iterator[BinaryIO]":
    """Yield a file that appears whole after the block, compressed if its name ends in .gz."""
    from transduce.errors import ConfigError
    from transduce.files import file_written_atomically

    if not path.name.endswith((".tsv", ".tsv.gz")):
        raise ConfigError(f"{path}: give a name that ends in .tsv or .tsv.gz.")
    with file_written_atomically(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
            yield packed  # type: ignore[misc]  # a writer of bytes, which is all that is asked of it
