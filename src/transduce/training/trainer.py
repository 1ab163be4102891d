"""The training loop of section 5.

The loop takes a step; reports, validations and checkpoints follow at their intervals. Everything that determines the
weights is in the checkpoint or follows from the seed. So a run that is killed at any moment and resumed with the same
threads and ranks ends with the same weights, bit for bit, as an uninterrupted one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import torch
from pydantic import JsonValue

from transduce.data.batching import PLAN_VERSION
from transduce.errors import ConfigError
from transduce.machine import Compute
from transduce.networks.network import Network
from transduce.progress import Progress, Silent, Stage
from transduce.training.arithmetic import Arithmetic
from transduce.training.batches import TrainingBatches
from transduce.training.checkpoint import Checkpoint
from transduce.training.config import TrainingConfig, seconds
from transduce.training.distributed import World
from transduce.training.memory import probe
from transduce.training.reports import Reports
from transduce.training.resumption import Resumption
from transduce.training.state import CheckpointState, Machine, TrainingProgress
from transduce.training.step import StepCounts, Stepper, StepReport
from transduce.training.validation import Validate, Validation


class Ending(Enum):
    """Why training ended."""

    STEPS = "its steps are done"
    EPOCHS = "its epochs are done"
    TIME = "its time is up"
    PATIENCE = "validation no longer improves"
    STOPPED = "it was asked to stop"


def require_an_end(config: TrainingConfig, *, validates: bool) -> None:
    """Raise ConfigError if neither a budget nor validation would end training."""
    if not validates and not config.has_budget:
        raise ConfigError(
            "Nothing would end this training: give training.steps, training.epochs or training.time, or give "
            "validation data, so that it ends when validation stops improving."
        )


def ending_at(config: TrainingConfig, state: TrainingProgress) -> Ending | None:
    """Return why training ends at this progress, or None if it continues."""
    return _ending(config, state, is_overtime=_is_time_up(config, state.seconds))


def _ending(
    config: TrainingConfig, state: TrainingProgress, *, is_stopped: bool = False, is_overtime: bool = False
) -> Ending | None:
    """Return why training ends, from values that are equal on all ranks; it reads no clock, since clocks differ."""
    patience = config.allowed_patience
    if config.step_budget is not None and state.step >= config.step_budget:
        return Ending.STEPS
    if config.epochs is not None and state.epoch >= config.epochs:
        return Ending.EPOCHS
    if is_overtime:
        return Ending.TIME
    if patience is not None and state.validations_without_better >= patience:
        return Ending.PATIENCE
    return Ending.STOPPED if is_stopped else None


def _is_time_up(config: TrainingConfig, elapsed: float) -> bool:
    return config.time is not None and elapsed >= seconds(config.time)


@dataclass(frozen=True)
class Validated:
    """A validation, the progress of the run at that step, and the checkpoint if one was saved."""

    validation: Validation
    progress: TrainingProgress
    is_best: bool
    checkpoint: Checkpoint | None


@dataclass(frozen=True)
class Outcome:
    """Why a run ended, and its progress."""

    ending: Ending
    progress: TrainingProgress


@dataclass(frozen=True)
class TrainerContext:
    """What a trainer needs besides the model, the batches and the settings: folder, compute, callbacks, ranks."""

    folder: Path
    compute: Compute
    identity: dict[str, JsonValue] = field(default_factory=dict)
    """Further settings that determine the weights, by dotted key: those of the model and the data."""
    validate: Validate | None = None
    """Called on every rank; must return the same on each."""
    after_validation: Callable[[Validated], None] | None = None
    """Called on rank 0, after a best validation is saved as a checkpoint."""
    stop_requested: Callable[[], bool] = lambda: False
    world: World = field(default_factory=World)
    progress: Progress = field(default_factory=Silent)


class Trainer:
    """Trains a model in a run directory; resumes from the newest checkpoint there."""

    def __init__(
        self, model: Network, batches: TrainingBatches, config: TrainingConfig, *, context: TrainerContext
    ) -> None:
        require_an_end(config, validates=context.validate is not None)
        self.batches, self.config, self.context = batches, config, context
        self.world = context.world
        arithmetic = Arithmetic(next(model.parameters()).device, context.compute.precision)
        self.stepper = Stepper(model, config, arithmetic=arithmetic, world=self.world)
        self.progress = context.progress if self.world.is_main else Silent()
        self.resumption = Resumption(self.stepper, context.folder, self.progress)
        self.machine = Machine.of(context.compute, ranks=self.world.size)
        self.identity: dict[str, JsonValue] = {
            **{f"training.{key}": value for key, value in config.trajectory().items()},
            "training.precision": self.machine.precision,
            **context.identity,
        }

    def run(self) -> Outcome:
        """Resume from the newest checkpoint, or begin, and train until a budget, patience or a request to stop."""
        state = self.resumption.resume(self.machine, identity=self.identity, keep=self.config.keep_checkpoints)
        ending = ending_at(self.config, state)
        if ending is not None:
            return Outcome(ending=ending, progress=state)
        self.resumption.require_space(keep=self.config.keep_checkpoints)
        probe(self.stepper, self.batches.largest(epoch=state.epoch, ranks=self.world.size))
        with (
            Reports(self.context.folder, self.config, resumed_step=state.step, is_main=self.world.is_main) as reports,
            self.progress.stage("training", total=self.config.step_budget, unit="steps") as stage,
        ):
            stage.advance(state.step)
            return self.loop(state, reports, stage)

    def loop(self, state: TrainingProgress, reports: Reports, stage: Stage) -> Outcome:
        """Take steps until training ends; then save, and return why it ended."""
        started, earlier_seconds = time.monotonic(), state.seconds
        saved_step, saved_at = state.step, started
        is_stopped, is_overtime = self.world.any(self.context.stop_requested()), False
        while (ending := _ending(self.config, state, is_stopped=is_stopped, is_overtime=is_overtime)) is None:
            report, state = self.step(state, started=started, earlier_seconds=earlier_seconds)
            is_stopped, is_overtime = report.counts.stops > 0, report.counts.overtimes > 0
            reports.add(state, report, stage)

            validation, is_best = None, False
            if self.context.validate is not None and state.step % self.config.validate_every == 0:
                validation = self.context.validate()
                state = state.after_validation(measure=self.config.best_by, value=self.value_of(validation))
                is_best = state.best is not None and state.best.step == state.step
                reports.add_validation(state, validation)

            is_regular, checkpoint = self.is_checkpoint_due(state.step, saved_at=saved_at), None
            if is_regular or is_best:
                checkpoint = self.save(state, is_regular=is_regular)
                saved_step, saved_at = state.step, time.monotonic() if is_regular else saved_at

            if validation is not None:
                if self.world.is_main and self.context.after_validation is not None:
                    self.context.after_validation(Validated(validation, state, is_best=is_best, checkpoint=checkpoint))
                is_stopped = self.world.any(is_stopped or self.context.stop_requested())
        reports.report(state, stage)
        if state.step > saved_step:
            self.save(state, is_regular=False)
        self.world.wait_for_all()  # so that every rank can read the newest checkpoint
        return Outcome(ending=ending, progress=state)

    def step(
        self, state: TrainingProgress, *, started: float, earlier_seconds: float
    ) -> tuple[StepReport, TrainingProgress]:
        """Take the next step of the plan; return its report and the progress after it."""

        def elapsed() -> float:
            return earlier_seconds + time.monotonic() - started

        def votes() -> StepCounts:
            overtime = self.world.is_main and _is_time_up(self.config, elapsed())
            return StepCounts(stops=self.context.stop_requested(), overtimes=overtime)

        planned, ranks = self.batches.steps(state.epoch), self.world.size
        shares = self.batches.deal(planned[state.position], epoch=state.epoch, rank=self.world.rank, ranks=ranks)
        report = self.stepper.take(state.step + 1, shares, votes=votes)
        state = state.after_step(tokens=int(report.counts.tokens), steps_in_epoch=len(planned))
        return report, state.model_copy(update={"seconds": elapsed()})

    def is_checkpoint_due(self, step: int, *, saved_at: float) -> bool:
        """Return whether the interval since the last regular checkpoint is over."""
        every = self.config.checkpoint_every
        if isinstance(every, int):
            return step % every == 0
        return time.monotonic() - saved_at >= seconds(every)

    def value_of(self, validation: Validation) -> float:
        """Return the loss or BLEU that `best_by` names, rank 0's value on every rank."""
        value = validation.loss if self.config.best_by == "loss" else validation.bleu
        if value is None:
            raise ConfigError('training.best_by = "bleu", but this validation gives no BLEU. Set it to "loss".')
        return float(self.world.broadcast_(torch.tensor([value], dtype=torch.float64, device=self.world.device)))

    def save(self, state: TrainingProgress, *, is_regular: bool) -> Checkpoint | None:
        """Write a checkpoint on rank 0, and prune the others."""
        if not self.world.is_main:
            return None
        whole = CheckpointState(
            progress=state, machine=self.machine, is_regular=is_regular, batch_plan=PLAN_VERSION, identity=self.identity
        )
        return self.resumption.save(whole, keep=self.config.keep_checkpoints)
