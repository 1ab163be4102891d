"""`transduce import`: makes a model directory of a model that another program trained."""

from pathlib import Path
from typing import Annotated

import typer


def import_model(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The folder or file of the model; `transduce import --help` lists the formats.",
            show_default=False,
        ),
    ],
    destination: Annotated[
        Path, typer.Argument(metavar="DEST", help="The folder to write; it must not exist.", show_default=False)
    ],
    source_language: Annotated[
        str | None,
        typer.Option("--from", metavar="LANGUAGE", help="The language of the sources, such as en.", show_default=False),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="LANGUAGE",
            help="The language to translate to, such as de; a model for several languages needs it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Import a model that another program trained.

    The programs are Hugging Face's MarianMT (OPUS-MT), GPT-2 and BERT, Marian (Firefox), CTranslate2, Argos Translate
    and fairseq.
    Nothing in the files is run. Whatever cannot be expressed is refused by its name.
    """
    from transduce.files import require_place_for_folder
    from transduce.importing import formats
    from transduce.model_directory import Languages

    require_place_for_folder(destination.parent)
    languages = Languages(source=source_language, target=target_language)
    model = formats.import_model(source, destination, languages)
    typer.echo(f"wrote {destination}: {model.origin}, {model.config.in_words}; README.md says what was assumed")
