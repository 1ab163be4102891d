"""Resuming a run: find the newest checkpoint, check that it belongs to the same experiment, load it on every rank.

Rank 0 reads the checkpoint and sends the weights to the other ranks, so only rank 0 needs the run directory.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from transduce.compute import configure_compute
from transduce.data.batching import PLAN_VERSION
from transduce.errors import RunError
from transduce.machine import Compute, TrainingPrecision, available_cores
from transduce.progress import Progress
from transduce.training.checkpoint import Checkpoint, Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.flat_parameters import copy_by_name
from transduce.training.state import CheckpointState, Machine, TrainingProgress, differences, refuse_other_settings
from transduce.training.step import Stepper

CHECKPOINTS_FOLDER = "checkpoints"

_NOT_COMPARED = frozenset({"data.expected_pairs"})
"""Keys that older versions wrote into the identity of checkpoints although they do not affect the weights."""


class Resumption:
    """Saves a run to its checkpoints and loads it from them."""

    def __init__(self, stepper: Stepper, run: Path, progress: Progress) -> None:
        self.stepper, self.run, self.progress = stepper, run, progress
        self.checkpoints = Checkpoints(run / CHECKPOINTS_FOLDER, progress=progress)

    def resume(self, machine: Machine, *, identity: Mapping[str, JsonValue], keep: int) -> TrainingProgress:
        """Load the newest checkpoint on every rank, if there is one, and return the progress of the run.

        It also prunes to `keep` checkpoints, in case a kill came between the last save and its pruning.
        """
        world, state = self.stepper.world, TrainingProgress()
        if world.is_main:
            self.checkpoints.remove_leftovers()
            latest = self.checkpoints.latest()
            if latest is not None:
                state = self._load(latest, machine, identity)
                self._prune(state, keep=keep)
        state = TrainingProgress.model_validate_json(world.broadcast_text(state.model_dump_json()))
        adam = self.stepper.optimizer
        for vector in (self.stepper.parameters.values, adam.mean, adam.square):
            world.broadcast_(vector)
        adam.count(state.step)
        return state

    def require_space(self, *, keep: int) -> None:
        """Raise RunError on rank 0 if the disk is too small for the checkpoints of the run."""
        if self.stepper.world.is_main:
            self.checkpoints.require_space(parameters=self.stepper.parameters.count, keep=keep)

    def save(self, state: CheckpointState, *, keep: int) -> Checkpoint:
        """Write a checkpoint, then remove those beyond `keep`."""
        parameters = self.stepper.parameters
        weights = dict(parameters.named_parts(parameters.values))
        checkpoint = self.checkpoints.save(state, model=weights, optimizer=self.stepper.optimizer.state())
        self._prune(state.progress, keep=keep)
        return checkpoint

    def _prune(self, progress: TrainingProgress, *, keep: int) -> None:
        self.checkpoints.prune(keep=keep, best_step=None if progress.best is None else progress.best.step)

    def _load(self, checkpoint: Checkpoint, machine: Machine, identity: Mapping[str, JsonValue]) -> TrainingProgress:
        was = checkpoint.state()
        if was.batch_plan != PLAN_VERSION:
            self.progress.warn(
                f"{self.run} was begun by another version of transduce, which put other sentences into each step. It "
                "resumes, but its weights will differ from those of a run that one version trained."
            )
        compared = {key: value for key, value in was.identity.items() if key not in _NOT_COMPARED}
        refuse_other_settings(self.run, compared, identity)
        if was.machine != machine:
            was_machine, now = was.machine.model_dump(), machine.model_dump()
            self.progress.warn(
                f"{self.run} was trained with other compute settings: {'; '.join(differences(was_machine, now))}. "
                "Training resumes, but its weights will differ in the last bits from a run without that change."
            )
        self._restore(checkpoint, steps=was.progress.step)
        return was.progress

    def _restore(self, checkpoint: Checkpoint, *, steps: int) -> None:
        parameters = self.stepper.parameters
        if not copy_by_name(checkpoint.model(), into=dict(parameters.named_parts(parameters.values))):
            raise RunError(
                f"{checkpoint.folder} holds a model of other sizes than this experiment's. Use the experiment that the "
                "run was begun with, or another --output."
            )
        self.stepper.optimizer.restore(checkpoint.optimizer(), steps=steps)


def recorded_machine(run: Path) -> Machine | None:
    """Return the machine of the newest readable checkpoint of a run, or None if there is none."""
    for checkpoint in reversed(Checkpoints(run / CHECKPOINTS_FOLDER).all()):
        try:
            return checkpoint.state().machine
        except RunError:
            continue
    return None


def compute_of_run(config: TrainingConfig, run: Path, *, world: World) -> Compute:
    """Choose threads and precision: those configured, else those of the newest checkpoint, else the machine's best.

    Rank 0 reads the checkpoint and decides the precision for all ranks, since ranks that round differently would not
    compute the same gradient.
    """
    recorded = recorded_machine(run) if world.is_main else None
    text = world.broadcast_text(recorded.model_dump_json() if recorded else "")
    was = Machine.model_validate_json(text) if text else None
    threads = config.threads or (was.threads if was else max(1, available_cores() // world.local_size))
    precision = was.precision if was and config.precision == "auto" else config.precision
    own = configure_compute(threads=threads, precision=precision)
    return replace(own, precision=cast("TrainingPrecision", world.broadcast_text(own.precision)))
