"""A run is a list of stages, and resuming is walking the list.

A stage has a folder, the stages that it needs, and what it leaves; it is done when that is whole on disk. The walk runs
the last stage unless it is done, and before it whatever an unfinished stage needs and is not done. So a result that is
missing is made again, alone, and one that no unfinished stage needs may be deleted: the teachers' models, for instance,
once their translations are part of the corpus.

A new command is another list of the same stages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from transduce.files import sweep
from transduce.progress import Progress
from transduce.training.distributed import World

StopRequested = Callable[[], bool]


@dataclass(frozen=True)
class StageContext:
    """What all stages of a run share."""

    world: World
    progress: Progress


class RunStage(Protocol):
    """One stage of a run. Every rank calls its methods, in the same order."""

    @property
    def name(self) -> str:
        """What it does, in words for a user."""

    @property
    def folder(self) -> Path:
        """The folder that it works in."""

    @property
    def leaves(self) -> Path:
        """The folder that it leaves."""

    @property
    def needs(self) -> Sequence["RunStage"]:
        """The stages whose results it reads; they come before it in the list."""

    def is_done(self) -> bool:
        """Return whether its result is whole on disk; a rank that needs no result of its own returns True."""

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Make the result, from wherever an earlier start left it; return False when asked to stop before the end."""


def walk(stages: Sequence[RunStage], *, context: StageContext, stop_requested: StopRequested) -> RunStage | None:
    """Run the stages that are needed and not done; return the stage that was asked to stop, or None at the end."""
    if context.world.is_main:
        for folder in dict.fromkeys(stage.folder for stage in stages):
            if folder.is_dir():
                sweep(folder)
    ran: set[RunStage] = set()
    for stage in unfinished(stages, world=context.world):
        # A needed result that was missing may turn out as it was before, and then this stage's result still holds.
        if not ran.isdisjoint(stage.needs) and _is_done_everywhere(stage, context.world):
            continue
        if not stage.run(stop_requested=stop_requested):
            return stage
        ran.add(stage)
    return None


def unfinished(stages: Sequence[RunStage], *, world: World) -> list[RunStage]:
    """Return the last stage unless it is done, and what unfinished stages need and is not done, in order."""
    needed, found = {stages[-1]}, list[RunStage]()
    for stage in reversed(stages):
        if stage in needed and not _is_done_everywhere(stage, world):
            found.append(stage)
            needed.update(stage.needs)
    return found[::-1]


def _is_done_everywhere(stage: RunStage, world: World) -> bool:
    return not world.any(not stage.is_done())
