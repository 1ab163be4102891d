"""`transduce translate` for documents: fills in translations in PO, TMX, XLIFF, TSV, JSONL and HTML."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

if TYPE_CHECKING:
    from transduce.decoding.config import DecodingConfig
    from transduce.documents.filling import FillingReport
    from transduce.translator import Glossary, Translation, Translator

_LISTED = 20


@dataclass(frozen=True)
class DocumentRequest:
    """The documents to fill in, and the options given on the command line."""

    documents: tuple[tuple[Path, str], ...]
    """The path and the format of each document."""
    output: Path | None
    force: bool
    overwrite: bool
    resume: bool
    languages: tuple[str | None, str | None]


def requested_documents(files: Sequence[str], *, format_name: str | None) -> tuple[tuple[Path, str], ...]:
    """Return the documents among the inputs, with their formats, or () if the inputs are lines of text."""
    if format_name == "text" or (format_name is None and not files):
        return ()
    from transduce.documents.filling import FORMATS, format_of
    from transduce.errors import DataError

    if format_name is not None and format_name not in FORMATS:
        raise DataError(f"--format {format_name} is not known. Choose one of text, {', '.join(FORMATS)}.")
    kinds = [format_name or (format_of(Path(name)) if name != "-" else None) for name in files]
    if not any(kinds):
        return ()
    if None in kinds:
        raise DataError(
            "Lines of text and documents cannot be mixed in one command. Run two commands, or give --format."
        )
    if "-" in files:
        raise DataError("A document cannot come from stdin, because it is read twice. Name its file.")
    return tuple((Path(name), kind) for name, kind in zip(files, kinds, strict=True) if kind is not None)


def require_place(request: DocumentRequest) -> None:
    """Raise an error if the output path cannot be used, before a model is loaded."""
    from transduce.documents.journal import journal_beside
    from transduce.errors import DataError

    if len(request.documents) > 1 and (request.output is None or request.output.is_file()):
        raise DataError("Several documents need an output folder. Name it with --output.")
    if request.resume and request.output is None:
        raise DataError("--resume continues an interrupted output. Name it with --output.")
    for path, _ in request.documents:
        output = _output_of(path, request)
        if output is not None and output.exists() and not request.force:
            raise DataError(f"{output} exists already. Add --force to overwrite it, or choose another name.")
        if output is not None and journal_beside(output).exists() and not (request.resume or request.force):
            raise DataError(
                f"{journal_beside(output)} is left from an interrupted translation. Add --resume to continue it, or "
                "--force to start over."
            )


def fill_documents(
    translator: "Translator", config: "DecodingConfig", request: DocumentRequest, *, glossary: "Glossary"
) -> None:
    """Fill in every document, and report the segments that were left untranslated."""
    from transduce.cli.terminal import is_watched, terminal_progress
    from transduce.data.formats import Selection
    from transduce.documents.filling import fill_document, journal_header, read_document
    from transduce.documents.journal import Journal, journal_beside
    from transduce.files import write_atomically
    from transduce.progress import Silent

    def translate(texts: Sequence[str], first: int) -> "list[Translation]":
        return translator.translate_all(texts, config, numbers=range(first, first + len(texts)), glossary=glossary)

    settings = {"model": translator.fingerprint, "glossary": (glossary.terms, glossary.mode), **config.model_dump()}
    known = translator.languages
    selection = Selection(request.languages[0] or known.source, request.languages[1] or known.target)
    for path, kind in request.documents:
        document = read_document(path, kind, selection=selection, overwrites=request.overwrite)
        output = _output_of(path, request)
        beside = None if output is None else journal_beside(output)
        watched: Any = terminal_progress() if is_watched(sys.stderr) else nullcontext(Silent())
        with _journal_file(beside, resume=request.resume) as file, watched as progress:
            journal = Journal(file, journal_header(document, settings), name=str(beside))
            try:
                content, report = fill_document(document, kind, translate, journal=journal, progress=progress)
            except KeyboardInterrupt:
                if beside is not None:
                    typer.echo(f"transduce: interrupted; {journal.count:,} segments are kept for --resume", err=True)
                raise typer.Exit(130) from None
        if output is None:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        else:
            write_atomically(output, content)
        if beside is not None:
            beside.unlink()
        _print_report(path, report)


@contextmanager
def _journal_file(path: Path | None, *, resume: bool) -> Iterator[BinaryIO]:
    import tempfile

    if path is None:
        with tempfile.TemporaryFile() as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if resume and path.exists() else "w+b") as file:
        yield file


def _output_of(path: Path, request: DocumentRequest) -> Path | None:
    if request.output is not None and (len(request.documents) > 1 or request.output.is_dir()):
        return request.output / path.name
    return request.output


def _print_report(path: Path, report: "FillingReport") -> None:
    kept = f", {report.kept:,} had a translation" if report.kept else ""
    typer.echo(f"{path}: {report.filled:,} filled in{kept}, {len(report.left):,} left", err=True)
    for where, reason, text in report.left[:_LISTED]:
        shown = f": {' '.join(text.split())[:60]}" if text else ""
        typer.echo(f"  {where}: {reason}{shown}", err=True)
    if len(report.left) > _LISTED:
        typer.echo(f"  and {len(report.left) - _LISTED:,} more", err=True)
        for reason, count in report.reasons().most_common(5):
            typer.echo(f"  {count:,} x {reason[:100]}", err=True)
