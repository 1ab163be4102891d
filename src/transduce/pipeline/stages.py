"""A run is a list of stages; starting or resuming it runs the stages that are not done.

A stage has a folder, the stages that it needs, and a result on disk; it is done when its result is complete.
`run_stages` runs the last stage unless it is done, and before it the unfinished stages that it needs, directly or
through others. So it rebuilds only the missing results, and a result that no unfinished stage needs may be deleted,
such as the teachers' models once their translations are part of the corpus.

A new command is another list of the same stages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from transduce.files import make_folder, remove_leftovers, write_atomically
from transduce.progress import Progress
from transduce.training.distributed import World

StopRequested = Callable[[], bool]


@dataclass(frozen=True)
class StageContext:
    """The ranks and the progress report that all stages of a run share."""

    world: World
    progress: Progress


class RunStage(Protocol):
    """One stage of a run. Every rank calls its methods, in the same order."""

    @property
    def name(self) -> str:
        """The name of the stage in messages to the user."""

    @property
    def folder(self) -> Path:
        """The folder that the stage works in."""

    @property
    def result(self) -> Path:
        """The folder of the result."""

    @property
    def needs(self) -> Sequence["RunStage"]:
        """The stages whose results this one reads; they come earlier in the list."""

    def is_done(self) -> bool:
        """Return whether the result is complete on disk; a rank that needs no result on its disk returns True."""

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Make the result, resuming an earlier start; return False if a request stopped it before the end."""


def say_what_it_holds(folder: Path, text: str) -> None:
    """Write the README.md of a stage's folder."""
    make_folder(folder)
    write_atomically(folder / "README.md", f"{text}\n")


def run_stages(stages: Sequence[RunStage], *, context: StageContext, stop_requested: StopRequested) -> RunStage | None:
    """Run the stages that are needed and not done; return the stage that a request stopped, or None at the end."""
    if context.world.is_main:
        for folder in dict.fromkeys(stage.folder for stage in stages):
            if folder.is_dir():
                remove_leftovers(folder)
    ran: set[RunStage] = set()
    for stage in unfinished(stages, world=context.world):
        # A rebuilt result may equal the one that was missing, and then the result of this stage is still valid.
        if not ran.isdisjoint(stage.needs) and _is_done_everywhere(stage, context.world):
            continue
        if not stage.run(stop_requested=stop_requested):
            return stage
        ran.add(stage)
    return None


def unfinished(stages: Sequence[RunStage], *, world: World) -> list[RunStage]:
    """Return, in order, the last stage unless it is done, and the unfinished stages that unfinished stages need."""
    needed, found = {stages[-1]}, list[RunStage]()
    for stage in reversed(stages):
        if stage in needed and not _is_done_everywhere(stage, world):
            found.append(stage)
            needed.update(stage.needs)
    return found[::-1]


def _is_done_everywhere(stage: RunStage, world: World) -> bool:
    return not world.any(not stage.is_done())
