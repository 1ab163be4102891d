"""`transduce translate` for documents: fills in the translations that they lack, or translates them in place."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import typer

from transduce.errors import shown

if TYPE_CHECKING:
    from transduce.decoding.config import DecodingConfig
    from transduce.documents.filling import FillingReport
    from transduce.translator import Glossary, Translation, Translator

_LISTED = 20
_MOST_IN_MEMORY = 64 << 20  # bytes of a journal that is not kept


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
    columns: tuple[str | None, str | None] = (None, None)
    """The source and target columns of tables, by name or by number from 1."""
    leave_below: float | None = None
    """The least confidence of a translation that is filled in."""


def requested_documents(files: Sequence[str], *, format_name: str | None) -> tuple[tuple[Path, str], ...]:
    """Return the documents among the inputs, with their formats, or () if the inputs are lines of text.

    Raises DataError for a file that is neither text nor a document that we can fill in.
    """
    if not files and format_name is None:
        return ()
    from transduce.documents.kinds import BYTES_TO_LOOK_AT, FORMAT_OF_ENDING, format_of, refuse_other_kinds
    from transduce.errors import DataError

    formats = sorted(set(FORMAT_OF_ENDING.values()))
    if format_name is not None and format_name not in ("text", *formats):
        raise DataError(f"--format {format_name} is not known. Choose one of text, {', '.join(formats)}.")
    kinds = [format_name or (format_of(Path(name)) if name != "-" else None) for name in files]
    for name, kind in zip(files, kinds, strict=True):
        if name != "-":
            refuse_other_kinds(Path(name), _first_bytes(Path(name), BYTES_TO_LOOK_AT), format_name=kind)
    if not any(kinds) or format_name == "text":
        return ()
    if None in kinds:
        raise DataError(
            "Lines of text and documents cannot be mixed in one command. Run two commands, or give --format."
        )
    if "-" in files:
        raise DataError("A document cannot come from stdin, because it is read twice. Name its file.")
    return tuple((Path(name), kind) for name, kind in zip(files, kinds, strict=True) if kind is not None)


def _first_bytes(path: Path, count: int) -> bytes:
    from transduce.errors import DataError

    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as fault:
        raise DataError(f"{path} cannot be read ({fault.strerror}). Check its name and permissions.") from None


def require_place(request: DocumentRequest) -> None:
    """Raise an error if the output path cannot be used, before a model is loaded."""
    from transduce.documents.journal import journal_beside
    from transduce.errors import DataError
    from transduce.files import require_place_for_file

    if len(request.documents) > 1 and (request.output is None or request.output.is_file()):
        raise DataError("Several documents need an output folder. Name it with --output.")
    if request.resume and request.output is None:
        raise DataError("--resume continues an interrupted output. Name it with --output.")
    for path, _ in request.documents:
        output = _output_of(path, request)
        if output is None:
            continue
        if output.is_file() and not request.force:
            raise DataError(f"{output} exists already. Add --force to overwrite it, or choose another name.")
        require_place_for_file(output)
        if journal_beside(output).exists() and not (request.resume or request.force):
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
    from transduce.documents.filling import FillingRules, copies_tags, fill_document, journal_header, read_document
    from transduce.documents.journal import Journal, journal_beside
    from transduce.files import write_atomically
    from transduce.progress import Silent

    def translate(texts: Sequence[str], first: int) -> "list[Translation]":
        return translator.translate_all(texts, config, numbers=range(first, first + len(texts)), glossary=glossary)

    _require_calibration(translator, request)
    rules = FillingRules(request.leave_below or 0.0, fills_incomplete=config.keep_placeholders != "enforce")
    settings = {
        "model": translator.fingerprint,
        "calibration": translator.calibration,
        "glossary": (glossary.terms, glossary.mode),
        "leave_below": request.leave_below,
        **config.model_dump(),
    }
    known = translator.languages
    source_column, target_column = (int(name) if name and name.isdecimal() else name for name in request.columns)
    selection = Selection(
        request.languages[0] or known.source, request.languages[1] or known.target, source_column, target_column
    )
    for path, kind in request.documents:
        document = read_document(path, kind, selection=selection, overwrites=request.overwrite)
        document = replace(
            document, copies_tags=copies_tags(document, kind, translator, keep_placeholders=config.keep_placeholders)
        )
        output = _output_of(path, request)
        beside = None if output is None else journal_beside(output)
        watched: Any = terminal_progress() if is_watched(sys.stderr) else nullcontext(Silent())
        with _journal_file(beside, resume=request.resume) as file, watched as progress:
            journal = Journal(file, journal_header(document, settings), name=str(beside))
            try:
                content, report = fill_document(
                    document, kind, translate, journal=journal, rules=rules, progress=progress
                )
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

    from transduce.files import make_folder

    if path is None:
        with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY) as file:  # so that most documents need no writable disk
            yield cast("BinaryIO", file)
        return
    make_folder(path.parent)
    try:
        with path.open("r+b" if resume and path.exists() else "w+b") as file:
            yield file
    except OSError:
        if path.is_file() and path.read_bytes().count(b"\n") < 2:  # it holds no segment to resume
            path.unlink()
        raise


def _output_of(path: Path, request: DocumentRequest) -> Path | None:
    if request.output is not None and (len(request.documents) > 1 or request.output.is_dir()):
        return request.output / path.name
    return request.output


def _require_calibration(translator: "Translator", request: DocumentRequest) -> None:
    from transduce.errors import ConfigError

    if request.leave_below is not None and (translator.calibration is None or not translator.calibration.confidence):
        raise ConfigError(
            "--leave-below needs the confidence of translations, and this model has no calibration. Run `transduce "
            "calibrate` with pairs that it was not trained on, or leave the option out."
        )


def _print_report(path: Path, report: "FillingReport") -> None:
    from transduce.documents.filling import UNSURE_BELOW

    kept = f", {report.kept:,} had a translation" if report.kept else ""
    typer.echo(f"{path}: {report.filled:,} filled in{kept}, {len(report.left):,} left", err=True)
    if len(report.left) > 1:
        for reason, count in report.reasons().most_common(8):
            typer.echo(f"  {count:,} left: {shown(reason[:100])}", err=True)
    _print_places(report.left)
    if report.unsure:
        typer.echo(
            f"  {report.unsure:,} filled in with a confidence below {UNSURE_BELOW:g}: more likely wrong than right. "
            f"--leave-below {UNSURE_BELOW:g} leaves them",
            err=True,
        )
    if report.noted:
        typer.echo(f"  {len(report.noted):,} filled in although something got lost:", err=True)
        _print_places(report.noted)


def _print_places(places: Sequence[tuple[str, str, str]]) -> None:
    for where, reason, text in places[:_LISTED]:
        quoted = f": {' '.join(text.split())[:60]}" if text else ""
        typer.echo(f"  {shown(where + ': ' + reason + quoted)}", err=True)
    if len(places) > _LISTED:
        typer.echo(f"  and {len(places) - _LISTED:,} more", err=True)
