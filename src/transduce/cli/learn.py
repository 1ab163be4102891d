"""`transduce learn`: the paper in six steps on a page, on your own sentence and a real model."""

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import Threads

_MOST_SENTENCES = 32


def learn(
    model: Annotated[
        str, typer.Argument(metavar="[MODEL]", help="A model directory, a run, or the name of a bundled model.")
    ] = "en-de",
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="With --output: a text file with a sentence on each line, and after a tab, if you like, a translation "
            "by a person. Eight English or German sentences unless given."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the page as one file with precomputed sentences, instead of serving it.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the local page; 0 takes a free one.", min=0, max=65535)] = 0,
    threads: Threads = None,
) -> None:
    """Learn how attention and translation work, in six steps on a page of your own machine. Ctrl-C stops it."""
    from transduce.errors import ConfigError

    if output is None:
        if sentences is not None:
            raise ConfigError("--sentences has no effect on the local page, where you type your own. Add --output.")
        _serve(model, port=port, threads=threads)
        return
    from transduce.cli.loading import load_translator
    from transduce.files import require_place_for_file, write_atomically
    from transduce.learning.lesson import lesson
    from transduce.learning.page import bundled_sentences, learning_page

    require_place_for_file(output)
    translator = load_translator(model, precision="float32", threads=threads)
    languages = translator.languages
    if sentences is None and languages.source not in (None, "en", "de"):
        raise ConfigError(
            f"The sentences that come with the page are English and German, and {model} translates from "
            f"{languages.source}. Give your own with --sentences FILE."
        )
    offered = bundled_sentences(source="de" if languages.source == "de" else "en")
    given = _read(sentences) if sentences is not None else offered
    knows_references = sentences is not None or languages.target == ("en" if languages.source == "de" else "de")
    lessons = []
    for number, (text, reference) in enumerate(given, start=1):
        typer.echo(f"{number} of {len(given)}: {text}")
        lessons.append(lesson(translator, text, reference=reference if knows_references else None))
    write_atomically(output, learning_page(lessons))
    typer.echo(f"wrote {output}: open it in a browser")


def _read(path: Path) -> list[tuple[str, str | None]]:
    from transduce.data.formats.corpus_file import CorpusFile
    from transduce.errors import DataError

    parts = (line.partition("\t") for line in CorpusFile(path).lines())
    found = [(text.strip(), reference.strip() or None) for text, _, reference in parts if text.strip()]
    if not 1 <= len(found) <= _MOST_SENTENCES:
        raise DataError(
            f"{path} has {len(found):,} lines with a sentence, and a page shows 1 to {_MOST_SENTENCES}. "
            "Choose some of them."
        )
    return found


def _serve(model: str, *, port: int, threads: int | None) -> None:
    from transduce.extras import SERVING, require

    require(SERVING, purpose="The local page (without --output)", extra="serve")
    from transduce.serving.config import gather_options
    from transduce.serving.server import serve as run_server

    flags = {"models": [model], "port": port, "threads": threads, "log_level": "warning"}
    given = {name: value for name, value in flags.items() if value is not None}
    run_server(
        gather_options(file={}, environment={}, flags=given),
        announce=lambda address: typer.echo(f"open {address}/learn in a browser (Ctrl-C stops)"),
    )
