"""`transduce models`: lists the bundled models and the models in the user's folders."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

# The folders to search unless the user names others.
USUAL_FOLDERS = (Path("models"), Path("runs"))


def models(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]…", help="Folders that hold models or runs; models/ and runs/ unless given.", exists=True
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """List the bundled models and those in your folders, with languages, sizes and scores."""
    import json

    found = [*_bundled(), *_in_folders(folders or [folder for folder in USUAL_FOLDERS if folder.is_dir()])]
    if json_output:
        typer.echo(json.dumps(found, indent=2))  # ASCII: names are a stranger's, and a terminal may obey U+009B
    elif found:
        _draw(found)
    else:
        typer.echo("No models were found. Train one: transduce train --train corpus.tsv --output runs/NAME")


def _bundled() -> "Iterator[dict[str, Any]]":
    from transduce.model_directory import bundled_models

    for name, folder in bundled_models().items():
        yield {"name": name, "bundled": True, **_facts(folder)}


def _in_folders(folders: "list[Path]") -> "Iterator[dict[str, Any]]":
    """Yield the models in each folder and in its direct subfolders: model directories, and runs that contain one."""
    from transduce.model_directory import CONFIG, find_model

    for folder in folders:
        for place in (folder, *sorted(path for path in folder.iterdir() if path.is_dir() and os.access(path, os.X_OK))):
            model = find_model(str(place.absolute()))
            if (model / CONFIG).is_file() and (place == folder or place.name != "model"):
                yield {"name": str(place), "bundled": False, **_facts(model)}


def _facts(folder: Path) -> dict[str, Any]:
    """Return the facts in a model's config.json, or its error: one bad model must not hide the others."""
    from transduce.errors import ModelError
    from transduce.model_directory import read_description
    from transduce.networks.cost import parameter_count

    try:
        description = read_description(folder)
        size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    except (ModelError, OSError) as fault:
        return {"folder": str(folder), "fault": str(fault)}
    return {
        "folder": str(folder),
        "source": description.languages.source,
        "target": description.languages.target,
        "parameters": parameter_count(description.architecture),
        "weights": description.weights,
        "bytes": size,
        "validation": description.training.get("validation", {}),
    }


def _draw(found: "list[dict[str, Any]]") -> None:
    from rich.table import Table
    from rich.text import Text

    from transduce.cli.terminal import SafeConsole
    from transduce.errors import shown

    table = Table(box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    table.add_column("languages")
    for name in ("parameters", "weights", "on disk", "BLEU"):
        table.add_column(name, justify="right")
    for model in found:
        name = model["name"] + (" (bundled)" if model["bundled"] else "")
        if "fault" in model:
            continue
        validation = model["validation"]
        bleu = validation.get("bleu") if isinstance(validation, dict) else None
        table.add_row(
            Text(name),
            Text(f"{model['source'] or '?'} → {model['target'] or '?'}"),
            f"{model['parameters']:,}",
            model["weights"],
            f"{model['bytes'] / 1e6:,.1f} MB",
            f"{bleu:.1f}" if isinstance(bleu, int | float) else "–",
        )
    SafeConsole().print(table)
    for model in found:
        if "fault" in model:
            typer.echo(shown(f"{model['name']} cannot be used: {model['fault']}"))
    typer.echo("BLEU is the score on the validation text; see the README.md of a model, or run `transduce evaluate`.")
