"""Going on where a run stopped: find the newest whole checkpoint, refuse one of another experiment, load it everywhere.

Rank 0 reads; the others get the weights from it, so that only one of them needs the run directory.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from transduce.compute import Compute, Precision, available_cores, settle
from transduce.data.batching import PLAN_VERSION
from transduce.errors import RunError
from transduce.progress import Progress
from transduce.training.checkpoint import Checkpoint, Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.state import CheckpointState, Machine, Progressed, differences
from transduce.training.step import Stepper

CHECKPOINTS_FOLDER = "checkpoints"

_OUTGROWN = frozenset({"data.expected_pairs"})
"""Keys that older checkpoints count among what decides where the weights go, though they do not."""


class Resumption:
    """What of a run is on the disk, and how it gets there and back."""

    def __init__(self, stepper: Stepper, run: Path, progress: Progress) -> None:
        self.stepper, self.run, self.progress = stepper, run, progress
        self.checkpoints = Checkpoints(run / CHECKPOINTS_FOLDER, progress=progress)

    def resume(self, machine: Machine, *, identity: Mapping[str, JsonValue], keep: int) -> Progressed:
        """Return where the run stands, with the weights and the optimizer of that moment on every rank.

        Of older checkpoints `keep` stay: a kill may have fallen between the newest one and the pruning after it.
        """
        world, state = self.stepper.world, Progressed()
        if world.is_main:
            self.checkpoints.sweep()
            latest = self.checkpoints.latest()
            if latest is not None:
                state = self._load(latest, machine, identity)
                self._prune(state, keep=keep)
        state = Progressed.model_validate_json(world.broadcast_text(state.model_dump_json()))
        adam = self.stepper.optimizer
        for vector in (self.stepper.parameters.values, adam.mean, adam.square):
            world.broadcast_(vector)
        adam.count(state.step)
        return state

    def require_space(self, *, keep: int) -> None:
        """Refuse a disk too small for the checkpoints to come."""
        if self.stepper.world.is_main:
            self.checkpoints.require_space(parameters=self.stepper.parameters.count, keep=keep)

    def save(self, state: CheckpointState, *, keep: int) -> Checkpoint:
        """Write a checkpoint, then remove those beyond `keep`."""
        parameters = self.stepper.parameters
        weights = dict(parameters.named_parts(parameters.values))
        checkpoint = self.checkpoints.save(state, model=weights, optimizer=self.stepper.optimizer.state())
        self._prune(state.progress, keep=keep)
        return checkpoint

    def _prune(self, progress: Progressed, *, keep: int) -> None:
        self.checkpoints.prune(keep=keep, best_step=None if progress.best is None else progress.best.step)

    def _load(self, checkpoint: Checkpoint, machine: Machine, identity: Mapping[str, JsonValue]) -> Progressed:
        was = checkpoint.state()
        if was.batch_plan != PLAN_VERSION:
            self.progress.warn(
                f"{self.run} was begun by another version of transduce, which put other sentences into each step. It "
                "goes on, but its weights will differ from those of a run that one version trained."
            )
        changed = differences({key: value for key, value in was.identity.items() if key not in _OUTGROWN}, identity)
        if changed:
            raise RunError(
                f"{self.run} was begun with other settings: {'; '.join(changed)}. These decide where the weights go, "
                "so the run cannot go on with them. Set them back, or begin a new run with another --output "
                f"(--start-from {self.run / 'model'} takes over what it has learned)."
            )
        if was.machine != machine:
            was_machine, now = was.machine.model_dump(), machine.model_dump()
            self.progress.warn(
                f"{self.run} was trained with other means: {'; '.join(differences(was_machine, now))}. It goes on, but "
                "its weights will differ in the last bits from a run without that change."
            )
        self._restore(checkpoint, steps=was.progress.step)
        return was.progress

    def _restore(self, checkpoint: Checkpoint, *, steps: int) -> None:
        parameters, weights = self.stepper.parameters, checkpoint.model()
        own = dict(parameters.named_parts(parameters.values))
        if own.keys() != weights.keys() or any(own[name].shape != weights[name].shape for name in own):
            raise RunError(
                f"{checkpoint.folder} holds a model of other sizes than this experiment's. Use the experiment it was "
                "begun with, or another --output."
            )
        for name, tensor in own.items():
            tensor.copy_(weights[name])
        self.stepper.optimizer.restore(checkpoint.optimizer(), steps=steps)


def recorded_machine(run: Path) -> Machine | None:
    """Return what a run computed with when it last saved, or None if it has not."""
    for checkpoint in reversed(Checkpoints(run / CHECKPOINTS_FOLDER).all()):
        try:
            return checkpoint.state().machine
        except RunError:
            continue
    return None


def settle_compute(config: TrainingConfig, run: Path, *, world: World) -> Compute:
    """Decide what to compute with: what the run began with, else what is configured, else what the machine offers.

    Rank 0 knows what the run began with, and its precision is everybody's: ranks that round differently would not
    compute one gradient.
    """
    recorded = recorded_machine(run) if world.is_main else None
    text = world.broadcast_text(recorded.model_dump_json() if recorded else "")
    was = Machine.model_validate_json(text) if text else None
    threads = config.threads or (was.threads if was else max(1, available_cores() // world.local_size))
    precision = was.precision if was and config.precision == "auto" else config.precision
    own = settle(threads=threads, precision=precision)
    return replace(own, precision=cast("Precision", world.broadcast_text(own.precision)))
