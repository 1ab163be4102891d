"""Translation of a large text on a Ray cluster, into a folder of parts such as a single shard makes.

    driver   writes the parts and the journal
    tasks    count the lines of the files; read the files that lack parts, and yield those parts
    actors   translate parts; each loads the model once

Ray repeats the work of a lost worker, so a part may be translated twice then; but it is written once, by the driver. A
file is read where Ray runs its task, so the files and the model must have the same paths on every machine.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from transduce.bulk.parts import End, Header, LargeText, Output, Part, changed_text, shard_opened
from transduce.bulk.translation import PartTranslation
from transduce.decoding.config import DecodingConfig
from transduce.engine import Precision
from transduce.errors import RunError, TransduceError
from transduce.extras import require
from transduce.progress import Progress
from transduce.translator.several_targets import toward
from transduce.translator.terminology import Glossary
from transduce.translator.translator import Translator

_OF_READING = 0.25  # processors reserved for a task that reads: most of the time it waits

Batch = Mapping[str, Any]


@dataclass(frozen=True)
class ActorConfig:
    """What an actor loads, and the settings that its translations must have."""

    model: str
    target: str | None
    precision: Precision
    search: DecodingConfig
    glossary: Glossary
    settings: Mapping[str, object]
    threads: int = 1


class PartActor:
    """Translates parts in a process of its own."""

    def __init__(self, config: ActorConfig) -> None:
        loaded = Translator.load(config.model, precision=config.precision, threads=config.threads)
        translator = toward(loaded, config.target)
        self.translation = PartTranslation(translator, config.search, config.glossary)
        if self.translation.settings != config.settings:
            raise RunError(f"{config.model} is another model on this worker than where the work was begun.")

    def __call__(self, batch: Batch) -> dict[str, list[str]]:
        """Return the translations of the parts of a batch."""
        return {"made": [self._made(Part(**json.loads(part))) for part in batch["part"]]}

    def _made(self, part: Part) -> str:
        output = self.translation(part)
        made = {"part": part.name, "source": part.digest, "lines": len(part.lines)}
        return json.dumps({**made, "output": {"lines": output.lines, "notes": output.notes}})


@dataclass(frozen=True)
class PartReader:
    """Reads the parts of a file that are not finished."""

    text: LargeText
    folder: Path
    finished: Mapping[str, str]
    """The hash of the lines of each finished part."""

    def __call__(self, batch: Batch) -> Iterator[dict[str, list[str]]]:
        """Yield the parts of each file of a batch, one by one."""
        for number, first in zip(batch["file"].tolist(), batch["first"].tolist(), strict=True):
            for part in self.text.parts_of(number, first=first):
                if part.name not in self.finished:
                    yield {"part": [json.dumps(asdict(part))]}
                elif self.finished[part.name] != part.digest:
                    raise changed_text(self.folder)


def require_ray() -> None:
    """Raise an error that says what to install if Ray Data is missing."""
    require(("ray", "pyarrow", "pandas"), purpose="--runner ray", extra="ray")


def translate_with_ray(
    folder: Path, text: LargeText, header: Header, config: ActorConfig, *, workers: int | None, progress: Progress
) -> None:
    """Translate the parts that are not finished: on the cluster that RAY_ADDRESS names, or on a local one.

    Without `workers` there are as many actors as the cluster has processors for.
    """
    # Ray reports its use to its makers unless told otherwise; transduce sends nothing anywhere.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what matters is raised as an exception, too
    import ray

    with shard_opened(folder, header) as writer:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        try:
            counts = _line_counts(text, progress=progress)
            starts = [0, *accumulate(counts)]
            entries = writer.finished
            finished = {name: entry.source for name, entry in entries.items()}
            files = [(n, starts[n]) for n, count in enumerate(counts) if text.names(n, count) - finished.keys()]
            most = workers or max(1, int(_processors() // config.threads))
            with progress.stage("translating", total=starts[-1], unit="lines") as stage:
                stage.advance(sum(entry.lines for entry in entries.values()))
                for made in _translated(files, PartReader(text, folder, finished), config, most=most):
                    writer.write(**{**made, "output": Output(**made["output"])})
                    stage.advance(made["lines"])
            parts = sum(len(text.names(n, count)) for n, count in enumerate(counts))
            writer.end(End(parts=parts, lines=starts[-1]))
        except ray.exceptions.RayError as fault:
            raise _own_error(fault) from fault
        finally:
            ray.shutdown()


def _translated(
    files: list[tuple[int, int]], reader: PartReader, config: ActorConfig, *, most: int
) -> Iterator[dict[str, Any]]:
    """Yield the translated parts of files, given by their number and that of their first line, in any order."""
    import ray

    if not files:
        return
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 1  # a block for each part: actors share a file, and parts arrive one by one
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"file": number, "first": first} for number, first in files]
    translated = (
        ray.data.from_items(rows, override_num_blocks=len(rows))
        .map_batches(reader, batch_size=1, num_cpus=_OF_READING)
        .map_batches(
            PartActor,
            fn_constructor_args=(config,),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=most),
            num_cpus=config.threads,
        )
    )
    yield from (json.loads(row["made"]) for row in translated.iter_rows())


def _own_error(fault: BaseException) -> BaseException:
    """Return the error that a user can fix, if one is the cause of Ray's, or Ray's own."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, TransduceError):
            return RunError(str(cause).splitlines()[-1])
        cause = getattr(cause, "cause", None) or cause.__cause__
    return fault


def _processors() -> float:
    import ray

    resources: Mapping[str, float] = ray.cluster_resources()
    return resources.get("CPU", 1.0)


def _line_counts(text: LargeText, *, progress: Progress) -> list[int]:
    import ray

    def lines(number: int) -> int:
        return sum(len(part.lines) for part in text.parts_of(number, first=0))

    count: Any = ray.remote(num_cpus=_OF_READING)(lines)
    with progress.stage("counting lines", total=len(text.files), unit="files") as stage:
        found = []
        for waiting in [count.remote(number) for number in range(len(text.files))]:
            found.append(int(ray.get(waiting)))
            stage.advance()
    return found
