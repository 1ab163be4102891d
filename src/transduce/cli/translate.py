"""`transduce translate`: translates text line by line, or fills in the translations that a document lacks."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, TextIO

import typer

from transduce.cli.options import (
    Beam,
    GlossaryFile,
    KeepPlaceholders,
    LengthPenalty,
    ModelName,
    PrecisionOption,
    SourceLanguage,
    TargetLanguage,
    Terms,
    Threads,
    UsesConsensus,
    UsesShortlist,
    given_options,
)
from transduce.cli.translate_documents import DocumentRequest, fill_documents, requested_documents, require_place
from transduce.cli.translate_parts import PartsRequest, refuse_parts_only, translate_parts
from transduce.cli.translated_lines import LineWriter, word_aligner
from transduce.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from transduce.decoding.config import DecodingConfig
    from transduce.progress import Progress
    from transduce.translator import Glossary, Translation, Translator


def translate(
    model: ModelName,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Text files with a sentence or paragraph per line, or documents: .po, .tmx, .xlf, .tsv, .csv, .jsonl, "
            ".json, .properties, .srt, .vtt, .md, .html, .docx. Standard input if none is given, or for -.",
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Translate this text instead of files.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The file to write, or with --shard and --runner the folder; standard output unless given."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")] = False,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="text, po, tmx, xliff, tsv, csv, jsonl, json, properties, srt, vtt, markdown, html or docx; by the "
            "file name unless given.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="In a document, also replace existing translations.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a document that was interrupted.")] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Translate the k-th share of a large text into a folder that all N commands share; FILEs may be "
            "patterns and compressed. The same command continues; `transduce merge` joins the parts.",
        ),
    ] = None,
    runner: Annotated[
        Literal["ray"] | None,
        typer.Option(help="Translate a large text on a Ray cluster into a folder, whose *.txt are the translation."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --runner: at most this many models at once; all cores unless given.")
    ] = None,
    part_lines: Annotated[
        int | None, typer.Option(min=1, help="With --shard and --runner: lines of a part, 10,000 unless given.")
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    source_column: Annotated[
        str | None, typer.Option(help="In a table: the source column, by name or by number from 1.")
    ] = None,
    target_column: Annotated[
        str | None, typer.Option(help="In a table: the column to fill in, by name or by number from 1.")
    ] = None,
    glossary: GlossaryFile = None,
    terms: Terms = "enforced",
    keep_placeholders: KeepPlaceholders = None,
    keep_form: Annotated[
        bool | None,
        typer.Option(
            "--keep-form/--no-keep-form",
            help="Give a translation the final punctuation and the capitals of its source; the model's setting unless "
            "given, which is usually on.",
        ),
    ] = None,
    leave_below: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="In a document, leave segments untranslated whose confidence is below this: the estimated probability "
            "that chrF would be at least 60. Needs a model with a calibration (`transduce calibrate`).",
        ),
    ] = None,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    shortlist: UsesShortlist = None,
    consensus: UsesConsensus = None,
    alternatives: Annotated[
        int | None, typer.Option(min=1, help="Number of translations per line, separated by tabs.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw tokens at random instead of beam search.")] = False,
    temperature: Annotated[
        float | None, typer.Option(help="With --sample: divide the log-probabilities by this value.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="With --sample: draw among the k most probable tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="With --sample: draw among the most probable tokens up to a sum of p.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --sample: seed of the random numbers.")] = None,
    precision: PrecisionOption = "auto",
    threads: Threads = None,
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments",
            help="Also write which source word each target word leans on: after ` ||| `, pairs of word numbers from 0, "
            "source-target (Pharaoh's format), or with --json as `alignments`.",
        ),
    ] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Write one JSON object per line, with scores and tokens.")
    ] = False,
) -> None:
    """Translate text line by line, or fill in the missing translations of a document.

    A line may be a paragraph: its sentences are translated one by one and put together again.
    """
    options = {
        "beam": beam if beam is not None else _wide_enough(alternatives, sample=sample),
        "length_penalty": length_penalty,
        "shortlist": shortlist,
        "consensus": consensus,
        "alternatives": alternatives,
        "keep_placeholders": keep_placeholders,
        "keep_form": keep_form,
        "sample": sample or None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    from transduce.translator import Glossary, read_glossary

    wanted = Glossary(()) if glossary is None else read_glossary(glossary, mode=terms)
    if shard is not None or runner is not None:
        refused: dict[str, object] = {"--text": text, "--format": format_name, "--overwrite": overwrite}
        refused |= {"--from": source_language, "--leave-below": leave_below, "--resume": resume}
        refused |= {"--source-column": source_column, "--target-column": target_column, "--force": force}
        refused |= {"--json": json_output, "--alignments": alignments, "--alternatives": alternatives}
        named = (model, target_language, tuple(files or ()), output)
        parts = PartsRequest(*named, shard, runner, workers, part_lines, precision, threads)
        translate_parts(parts, given_options(options), glossary=wanted, refused=refused)
        return
    refuse_parts_only({"--workers": workers, "--part-lines": part_lines})
    inputs = inputs_of(text, files or [])
    request = DocumentRequest(
        documents=requested_documents(files or [], format_name=format_name),
        output=output,
        force=force,
        overwrite=overwrite,
        resume=resume,
        languages=(source_language, target_language),
        columns=(source_column, target_column),
        leave_below=leave_below,
    )
    if request.documents:
        _refuse_lines_only(json_output=json_output, alternatives=alternatives, alignments=alignments)
        require_place(request)
    else:
        _refuse_documents_only(request)
        _refuse_two_columns(alignments=alignments, alternatives=alternatives, json_output=json_output)
        refuse_to_overwrite(output, force=force)
    from transduce.cli.loading import load_translator
    from transduce.translator.several_targets import toward

    translator = load_translator(model, precision=precision, threads=threads)
    translator = toward(translator, target_language, is_strict=not request.documents)
    config = translator.configure(**given_options(options))
    lines = LineWriter(json_output, aligner=word_aligner(translator) if alignments else None)
    if request.documents:
        fill_documents(translator, config, request, glossary=wanted)
        return
    if text is None and not files and sys.stdin.isatty() and output is None:
        _translate_interactively(translator, config, glossary=wanted, lines=lines)
        return
    with opened_output(output) as stream:
        _translate_stream(translator, inputs, config, stream, glossary=wanted, lines=lines)


def _translate_stream(
    translator: "Translator",
    inputs: "Iterable[BinaryIO]",
    config: "DecodingConfig",
    stream: TextIO,
    *,
    glossary: "Glossary",
    lines: LineWriter,
) -> None:
    from transduce.translator.lines import LineReader, translate_lines

    reader = LineReader(inputs)
    warnings: list[str] = []
    translations = translate_lines(translator, reader, config, glossary=glossary)
    try:
        with _progress_if_output_is_elsewhere(stream) as progress, progress.stage("translating", unit="lines") as stage:
            for number, translation in enumerate(translations, start=1):
                stream.write(lines.line(translation, is_terminal=stream.isatty()) + "\n")
                if translation.refusal:
                    warnings.append(f"line {number} is left empty: {translation.refusal}")
                absent = glossary.absent(translation.source, translation.text)
                if absent:
                    warnings.append(f"line {number} lacks the terms {', '.join(absent)}")
                if lost := [own for own in _losses(translation) if own not in absent]:
                    warnings.append(f"line {number} lacks {', '.join(lost)}")
                stage.advance()
        stream.flush()
    except KeyboardInterrupt:
        stream.flush()
        raise typer.Exit(130) from None
    finally:
        if reader.damaged_lines:
            warnings.append(f"{reader.damaged_lines:,} lines had bytes that are not UTF-8; they became U+FFFD")
        for warning in warnings:
            typer.echo(f"transduce: {shown(warning)}", err=True)


def _progress_if_output_is_elsewhere(stream: TextIO) -> "AbstractContextManager[Progress]":
    """Return a progress bar if stderr is a terminal and the output is not, else a silent progress."""
    from contextlib import nullcontext

    from transduce.progress import Silent

    if not sys.stderr.isatty() or stream.isatty():
        return nullcontext(Silent())
    from transduce.cli.terminal import is_watched, terminal_progress  # rich takes 0.1 s to import

    return terminal_progress() if is_watched(sys.stderr) else nullcontext(Silent())


def _translate_interactively(
    translator: "Translator", config: "DecodingConfig", *, glossary: "Glossary", lines: LineWriter
) -> None:
    languages = translator.languages
    typer.echo("Type a sentence and press Enter; Ctrl-D ends the program.", err=True)
    try:
        while True:
            typer.echo(f"{languages.source or 'source'} > ", nl=False, err=True)
            read = sys.stdin.readline()
            if not read:
                break
            if read.strip():
                translation = translator.translate_all([read.rstrip("\r\n")], config, glossary=glossary)[0]
                typer.echo(f"{languages.target or 'target'} > ", nl=False, err=True)
                typer.echo(lines.line(translation, is_terminal=sys.stdout.isatty()))
                if translation.refusal:
                    typer.echo(f"transduce: {translation.refusal}", err=True)
                if lost := _losses(translation):
                    typer.echo(f"transduce: the translation lacks {shown(', '.join(lost))}", err=True)
    except KeyboardInterrupt:
        pass
    typer.echo("", err=True)


def _losses(translation: "Translation") -> tuple[str, ...]:
    """Return the placeholders, terms and numbers that a translation lost."""
    return (*translation.missing, *translation.missing_numbers)


def inputs_of(text: str | None, files: list[str]) -> "Iterator[BinaryIO]":
    """Return the streams to read; raise an error for a missing file before a model is loaded."""
    import io

    from transduce.errors import DataError

    if text is not None and files:
        raise DataError("Give either --text or files, not both.")
    for name in files:
        if name != "-" and not Path(name).is_file():
            what = "is a folder" if Path(name).is_dir() else "does not exist"
            raise DataError(f'{name} {what}. For words rather than a file, write --text "{name} …".')
    if text is not None:
        return iter([io.BytesIO(text.encode("utf-8", "surrogateescape"))])

    def opened() -> "Iterator[BinaryIO]":
        from transduce.documents.kinds import refuse_other_kinds

        for name in files or ["-"]:
            if name == "-":
                # A terminal or a test's stream has no bytes to look at before they are read.
                if isinstance(sys.stdin.buffer, io.BufferedReader) and not sys.stdin.isatty():
                    refuse_other_kinds(Path("stdin"), sys.stdin.buffer.peek(), format_name="text")
                yield sys.stdin.buffer
            else:
                with Path(name).open("rb") as file:
                    yield file

    return opened()


def refuse_to_overwrite(output: Path | None, *, force: bool) -> None:
    """Raise an error if the output file exists, or if no file can be written there."""
    from transduce.errors import DataError
    from transduce.files import require_place_for_file

    if output is None:
        return
    if output.is_file() and not force:
        raise DataError(f"{output} exists already. Add --force to overwrite it, or choose another name.")
    require_place_for_file(output)


def _refuse_lines_only(*, json_output: bool, alternatives: int | None, alignments: bool) -> None:
    from transduce.errors import DataError

    if json_output or alternatives is not None or alignments:
        raise DataError(
            "--json, --alternatives and --alignments are for lines of text; a document has one translation per segment."
        )


def _refuse_two_columns(*, alignments: bool, alternatives: int | None, json_output: bool) -> None:
    from transduce.errors import DataError

    if alignments and alternatives is not None and not json_output:
        raise DataError("--alignments aligns the best translation alone. Leave --alternatives out, or add --json.")


def _refuse_documents_only(request: DocumentRequest) -> None:
    from transduce.errors import DataError

    texts = (request.languages[0], *request.columns)
    if request.overwrite or request.resume or any(texts) or request.leave_below is not None:
        raise DataError(
            "--overwrite, --resume, --leave-below, --from, --source-column and --target-column are for "
            "documents. Give a file with the ending of a document (see --help), or name its format with --format."
        )


def opened_output(output: Path | None) -> Any:  # noqa: ANN401 - a context manager of a text stream
    """Return a context with the stream to write: the file, which appears when it is whole, or standard output."""
    from contextlib import nullcontext

    if output is not None:
        return _written_file(output)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    return nullcontext(sys.stdout)


@contextmanager
def _written_file(output: Path) -> "Iterator[TextIO]":
    """Yield a stream that replaces `output` after the block, also after Ctrl-C; an error leaves `output` unchanged."""
    import io

    from transduce.files import file_written_atomically

    interruption = None
    with file_written_atomically(output) as file:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield stream
        except typer.Exit as fault:
            interruption = fault
        stream.flush()
        stream.detach()
    if interruption is not None:
        raise interruption


def _wide_enough(alternatives: int | None, *, sample: bool) -> int | None:
    return alternatives if alternatives is not None and alternatives > 4 and not sample else None
