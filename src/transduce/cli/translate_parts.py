"""`transduce translate --shard` and `--runner ray`: translates a text of any size into a folder of parts."""

import glob
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from transduce.bulk.parts import PartEntry, Shard
    from transduce.cli.options import PrecisionName
    from transduce.decoding.config import DecodingOptions
    from transduce.translator import Glossary


@dataclass(frozen=True)
class PartsRequest:
    """The options given on the command line."""

    model: str
    target: str | None
    """The language to translate to; the model's own if None."""
    files: Sequence[str]
    output: Path | None
    shard: str | None
    """As 3/64."""
    runner: str | None
    workers: int | None
    part_lines: int | None
    precision: "PrecisionName"
    threads: int | None


def refuse_parts_only(options: Mapping[str, object]) -> None:
    """Raise an error if one of the options that need --shard or --runner was given."""
    from transduce.errors import ConfigError

    if given := [name for name, value in options.items() if value is not None]:
        raise ConfigError(f"{given[0]} needs --shard or --runner.")


def translate_parts(
    request: PartsRequest, search: "DecodingOptions", *, glossary: "Glossary", refused: Mapping[str, object]
) -> None:
    """Translate the parts of one shard, or all of them on a Ray cluster; options in `refused` are an error if given."""
    folder = _require_folder(request, refused)
    from transduce.bulk.parts import LINES_OF_A_PART, Header, LargeText, Shard, fill, finished_parts
    from transduce.bulk.ray_runner import ActorConfig, require_ray, translate_with_ray
    from transduce.bulk.translation import PartTranslation
    from transduce.cli.loading import load_translator
    from transduce.cli.terminal import terminal_progress
    from transduce.files import require_place_for_folder
    from transduce.translator.several_targets import toward

    shard = Shard() if request.shard is None else _shard(request.shard)
    text = LargeText(files_of(request.files), request.part_lines or LINES_OF_A_PART)
    require_place_for_folder(folder)
    if request.shard is None:
        require_ray()
    loaded = load_translator(request.model, precision=request.precision, threads=request.threads)
    translator = toward(loaded, request.target)
    translation = PartTranslation(translator, translator.configure(**search), glossary)
    settings = json.loads(json.dumps({**translation.settings, "lines of a part": text.part_lines}))
    header = Header(shard=shard, files=tuple(path.name for path in text.files), settings=settings)
    try:
        with terminal_progress() as progress:
            if request.shard is not None:
                fill(folder, text.parts(), header, translation, progress=progress)
            else:
                config = ActorConfig(
                    model=str(translator.models[0].folder.absolute()),
                    target=request.target,
                    precision=translator.precision,
                    search=translation.search,
                    glossary=glossary,
                    settings=translation.settings,
                    threads=request.threads or 1,
                )
                translate_with_ray(folder, text, header, config, workers=request.workers, progress=progress)
    except KeyboardInterrupt:
        typer.echo("transduce: interrupted; the parts so far are kept, and the same command continues", err=True)
        raise typer.Exit(130) from None
    if shard.count > 1:
        typer.echo(
            f"shard {shard.number} of {shard.count} is done; once all are: transduce merge {folder} --output FILE"
        )
        return
    report(finished_parts(folder), f"{folder}/*.txt")


def report(entries: "Sequence[PartEntry]", where: str) -> None:
    """Say how many lines there are, and how many with what is worth a look."""
    notes = Counter[str]()
    for entry in entries:
        notes.update(entry.notes)
    typer.echo(f"{sum(entry.lines for entry in entries):,} lines in {where}")
    for note, count in notes.items():
        typer.echo(f"  {count:,} {note}")


def _require_folder(request: PartsRequest, refused: Mapping[str, object]) -> Path:
    from transduce.errors import ConfigError

    if given := [name for name, value in refused.items() if value not in (None, False)]:
        raise ConfigError(f"{given[0]} cannot be combined with --shard or --runner, which write lines of text alone.")
    if request.shard is not None and request.runner is not None:
        raise ConfigError("Give --shard or --runner, not both.")
    if request.runner is None and request.workers is not None:
        raise ConfigError("--workers is for --runner; each --shard is one process.")
    if request.output is None:
        raise ConfigError("Name the folder to write, the same for every shard: --output DIR.")
    return request.output.absolute()


def _shard(given: str) -> "Shard":
    from transduce.bulk.parts import Shard
    from transduce.errors import ConfigError

    number, slash, count = given.partition("/")
    try:
        return Shard(number=int(number), count=int(count if slash else ""))
    except ValueError:
        raise ConfigError(f"--shard {given}: write number/count, such as 3/64, from 1/64 to 64/64.") from None


def files_of(names: Sequence[str]) -> tuple[Path, ...]:
    """Return the files that the names and patterns stand for, those of a pattern by name."""
    from transduce.errors import DataError

    found: list[Path] = []
    for name in names:
        paths = [Path(name)] if Path(name).is_file() else [Path(path) for path in sorted(glob.glob(name))]  # noqa: PTH207 - it may be absolute
        if not paths or not all(path.is_file() for path in paths):
            raise DataError(f"{name} is no file, and no pattern such as 'corpus/*.gz' that matches files only.")
        found += paths
    if not found:
        raise DataError("Name the files to translate, or a pattern such as 'corpus/*.gz'; standard input is no file.")
    return tuple(path.absolute() for path in found)
