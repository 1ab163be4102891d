"""The training loop of section 5, written out as a loop.

A step is planned, run, applied; at their intervals come a report, a validation, a checkpoint. Everything that decides
where the weights go is in the checkpoint or follows from the seed, so a run killed at any moment and started again
ends with the weights of a run that was never killed, to the bit, at equal threads and ranks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import torch
from pydantic import JsonValue

from transduce.compute import Compute
from transduce.data.batching import PLAN_VERSION
from transduce.errors import ConfigError
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
from transduce.training.state import CheckpointState, Machine, Progressed
from transduce.training.step import StepCounts, Stepper, StepReport
from transduce.training.validation import Validate, Validation


class Ending(Enum):
    """Why training ended."""

    STEPS = "its steps are done"
    EPOCHS = "its epochs are done"
    TIME = "its time is up"
    PATIENCE = "validation no longer improves"
    STOPPED = "it was asked to stop"


@dataclass(frozen=True)
class Validated:
    """A validation, where the run stood, and the checkpoint of that moment if one was saved."""

    validation: Validation
    progress: Progressed
    is_best: bool
    checkpoint: Checkpoint | None


@dataclass(frozen=True)
class Outcome:
    """How a run ended and where it stands."""

    ending: Ending
    progress: Progressed


@dataclass(frozen=True)
class Surroundings:
    """What a trainer is given beside the model and its data: where to write, whom to ask, whom to tell."""

    folder: Path
    compute: Compute
    identity: dict[str, JsonValue] = field(default_factory=dict)
    """What else decides where the weights go, by dotted key: the model's and the data's settings."""
    validate: Validate | None = None
    """Called on every rank, which must all take part and get the same answer."""
    after_validation: Callable[[Validated], None] | None = None
    """Called on rank 0, after the checkpoint of a best validation was saved."""
    stop_requested: Callable[[], bool] = lambda: False
    world: World = field(default_factory=World)
    progress: Progress = field(default_factory=Silent)


class Trainer:
    """Trains a model in a run directory, from where the run stands to its budget."""

    def __init__(
        self, model: Network, batches: TrainingBatches, config: TrainingConfig, *, surroundings: Surroundings
    ) -> None:
        if surroundings.validate is None and not config.has_budget:
            raise ConfigError(
                "Nothing would end this training: give training.steps, training.epochs or training.time, or "
                "validation data, so that it ends when validation stops improving."
            )
        self.batches, self.config, self.around = batches, config, surroundings
        self.world = surroundings.world
        arithmetic = Arithmetic(next(model.parameters()).device, surroundings.compute.precision)
        self.stepper = Stepper(model, config, arithmetic=arithmetic, world=self.world)
        self.progress = surroundings.progress if self.world.is_main else Silent()
        self.resumption = Resumption(self.stepper, surroundings.folder, self.progress)
        self.machine = Machine.of(surroundings.compute, ranks=self.world.size)
        self.identity: dict[str, JsonValue] = {
            **{f"training.{key}": value for key, value in config.trajectory().items()},
            "training.precision": self.machine.precision,
            **surroundings.identity,
        }

    def run(self) -> Outcome:
        """Go on from the newest checkpoint, or begin, and train until a budget, patience or a stop ends it."""
        state = self.resumption.resume(self.machine, identity=self.identity, keep=self.config.keep_checkpoints)
        ending = self.ending(state, is_overtime=self.is_time_up(state.seconds))
        if ending is not None:
            return Outcome(ending=ending, progress=state)
        self.resumption.require_space(keep=self.config.keep_checkpoints)
        probe(self.stepper, self.batches.largest(epoch=state.epoch, ranks=self.world.size))
        with (
            Reports(self.around.folder, self.config, resumed_step=state.step, is_main=self.world.is_main) as reports,
            self.progress.stage("training", total=self.config.step_budget, unit="steps") as stage,
        ):
            stage.advance(state.step)
            return self.loop(state, reports, stage)

    def loop(self, state: Progressed, reports: Reports, stage: Stage) -> Outcome:
        """Take steps until something ends training; then save, and say what ended it."""
        started, earlier_seconds = time.monotonic(), state.seconds
        saved_step, saved_at = state.step, started
        is_stopped, is_overtime = self.world.any(self.around.stop_requested()), False
        while (ending := self.ending(state, is_stopped=is_stopped, is_overtime=is_overtime)) is None:
            report, state = self.step(state, started=started, earlier_seconds=earlier_seconds)
            is_stopped, is_overtime = report.counts.stops > 0, report.counts.overtimes > 0
            reports.add(state, report, stage)

            validation, is_best = None, False
            if self.around.validate is not None and state.step % self.config.validate_every == 0:
                validation = self.around.validate()
                state = state.after_validation(measure=self.config.best_by, value=self.value_of(validation))
                is_best = state.best is not None and state.best.step == state.step
                reports.add_validation(state, validation)

            is_regular, checkpoint = self.is_checkpoint_due(state.step, saved_at=saved_at), None
            if is_regular or is_best:
                checkpoint = self.save(state, is_regular=is_regular)
                saved_step, saved_at = state.step, time.monotonic() if is_regular else saved_at

            if validation is not None:
                self.tell(Validated(validation, state, is_best=is_best, checkpoint=checkpoint))
                is_stopped = self.world.any(is_stopped or self.around.stop_requested())
        if state.step > saved_step:
            self.save(state, is_regular=False)
        self.world.wait_for_all()  # so that every rank may read the newest checkpoint
        return Outcome(ending=ending, progress=state)

    def ending(self, state: Progressed, *, is_stopped: bool = False, is_overtime: bool = False) -> Ending | None:
        """Return why training ends here, or None if it goes on; the ranks must agree, so no clock is read here."""
        config, patience = self.config, self.config.allowed_patience
        if config.step_budget is not None and state.step >= config.step_budget:
            return Ending.STEPS
        if config.epochs is not None and state.epoch >= config.epochs:
            return Ending.EPOCHS
        if is_overtime:
            return Ending.TIME
        if patience is not None and state.validations_without_better >= patience:
            return Ending.PATIENCE
        return Ending.STOPPED if is_stopped else None

    def step(self, state: Progressed, *, started: float, earlier_seconds: float) -> tuple[StepReport, Progressed]:
        """Take the next step of the plan; return what it was and where the run stands after it."""

        def elapsed() -> float:
            return earlier_seconds + time.monotonic() - started

        def votes() -> StepCounts:
            overtime = self.world.is_main and self.is_time_up(elapsed())
            return StepCounts(stops=self.around.stop_requested(), overtimes=overtime)

        planned, ranks = self.batches.steps(state.epoch), self.world.size
        shares = self.batches.deal(planned[state.position], epoch=state.epoch, rank=self.world.rank, ranks=ranks)
        report = self.stepper.take(state.step + 1, shares, votes=votes)
        state = state.after_step(tokens=int(report.counts.tokens), steps_in_epoch=len(planned))
        return report, state.model_copy(update={"seconds": elapsed()})

    def is_time_up(self, elapsed: float) -> bool:
        """Return whether a budget of time is spent."""
        return self.config.time is not None and elapsed >= seconds(self.config.time)

    def is_checkpoint_due(self, step: int, *, saved_at: float) -> bool:
        """Return whether the interval asks for a checkpoint now."""
        every = self.config.checkpoint_every
        if isinstance(every, int):
            return step % every == 0
        return time.monotonic() - saved_at >= seconds(every)

    def value_of(self, validation: Validation) -> float:
        """Return the number by which a validation is judged, rank 0's on every rank."""
        value = validation.loss if self.config.best_by == "loss" else validation.bleu
        if value is None:
            raise ConfigError('training.best_by = "bleu", but this validation gives no BLEU. Set it to "loss".')
        return float(self.world.broadcast_(torch.tensor([value], dtype=torch.float64, device=self.world.device)))

    def save(self, state: Progressed, *, is_regular: bool) -> Checkpoint | None:
        """Write a checkpoint on rank 0, and remove what no longer needs to be kept."""
        if not self.world.is_main:
            return None
        whole = CheckpointState(
            progress=state, machine=self.machine, is_regular=is_regular, batch_plan=PLAN_VERSION, identity=self.identity
        )
        return self.resumption.save(whole, keep=self.config.keep_checkpoints)

    def tell(self, validated: Validated) -> None:
        """Let the caller use a validation on rank 0."""
        if self.world.is_main and self.around.after_validation is not None:
            self.around.after_validation(validated)
