"""The announcement of a run before its first step: its sizes, the time and disk space it needs on this machine."""

import math
import statistics
import time
from collections.abc import Iterator

from transduce.architectures import parameter_count
from transduce.pipeline.run import Run
from transduce.pipeline.teaching import DIRECTIONS, DIVERSIFIED, TEACHERS
from transduce.training.config import seconds
from transduce.training.trainer import Trainer

# Training without a budget usually takes between these numbers of epochs until validation stops improving.
_USUAL_EPOCHS = (15, 40)


def announcement(run: Run) -> Iterator[str]:
    """Yield the lines that a user reads before training begins."""
    experiment, choice = run.experiment, run.choice
    training, model = experiment.training, experiment.model
    trainer = run.training.on_prepared_text().opened().trainer()
    steps = trainer.batches.steps(0)
    padding = trainer.batches.plan.padding(steps).share
    name = f"preset {choice.preset}" if choice.preset else "settings"
    yield f"{name}, because {choice.reason}" if choice.preset and choice.reason != "you named it" else name
    pieces = run.prepared.report.vocabulary_in_words
    yield f"{parameter_count(model):,} parameters: {model.in_words}, {pieces} pieces"
    valid = len(run.prepared.valid) if run.prepared.valid is not None else 0
    yield (
        f"{len(run.prepared.train):,} pairs to train on, {valid:,} to validate; {len(steps):,} steps an epoch of at "
        f"most {training.batch_tokens:,} tokens a side, {padding:.1%} padding"
    )
    if training.teacher_steps is not None:
        yield (
            f"two teachers train first, {training.teacher_steps:,} steps each, in {run.folder / TEACHERS}; with their "
            f"translations there are about {DIVERSIFIED * len(run.prepared.train):,} pairs to train on"
        )
    yield _duration_line(trainer, len(steps))
    yield f"about {disk_bytes(run) / 1e9:.2g} GB of disk for checkpoints in {run.folder}"
    yield (
        "Ctrl-C finishes the step and saves; the same command resumes. From the first validation on (step "
        f"{training.validate_every:,}), model/ holds the best model so far"
    )


def disk_bytes(run: Run) -> int:
    """Return the most bytes of checkpoints: weights and two moments each; those kept, the best, one being written."""
    training = run.experiment.training
    networks = 1 + (len(DIRECTIONS) if training.teacher_steps else 0)
    return networks * (training.keep_checkpoints + 2) * 3 * 4 * parameter_count(run.experiment.model)


def seconds_per_step(trainer: Trainer, *, during: float = 2.0) -> float:
    """Run forward and backward passes for `during` seconds, and return the median duration of the later half.

    The first step loads libraries and does not count. The next ones are slower than later ones too, because each new
    matrix size needs preparation, and there are some hundreds of sizes.
    """
    steps, stepper, durations = trainer.batches.steps(0), trainer.stepper, list[float]()
    while len(durations) < 2 or (sum(durations[1:]) < during and len(durations) <= len(steps)):
        started = time.monotonic()
        step = steps[len(durations) % len(steps)]
        for batch in trainer.batches.deal(step, epoch=0, rank=trainer.world.rank, ranks=trainer.world.size):
            stepper.accumulate(batch)
        durations.append(time.monotonic() - started)
    stepper.parameters.zero_gradients()
    return statistics.median(durations[1 + len(durations[1:]) // 2 :])


def _duration_line(trainer: Trainer, steps_in_epoch: int) -> str:
    training, compute = trainer.config, trainer.context.compute
    per_step = seconds_per_step(trainer)
    epoch = per_step * steps_in_epoch * (1 if training.teacher_steps is None else DIVERSIFIED)
    of_teachers = per_step * len(DIRECTIONS) * (training.teacher_steps or 0)
    here = f"{compute.threads} threads, {compute.precision}"
    bounds = [per_step * bound for bound in (training.step_budget,) if bound is not None]
    bounds += [epoch * training.epochs] if training.epochs else []
    bounds += [seconds(training.time)] if training.time else []
    if bounds:
        return (
            f"about {rough_duration(of_teachers + min(bounds))} here at most ({here}); {rough_duration(epoch)} an epoch"
        )
    least, most = (rough_duration(of_teachers + epoch * epochs) for epochs in _USUAL_EPOCHS)
    return (
        f"about {rough_duration(epoch)} an epoch here ({here}); it ends when validation has not improved "
        f"{training.allowed_patience} times, usually after {_USUAL_EPOCHS[0]} to {_USUAL_EPOCHS[1]} epochs: "
        f"{least} to {most}"
    )


def rough_duration(duration: float) -> str:
    """Return a duration in the unit that people would use."""
    if duration < 90:
        return f"{math.ceil(duration)} s"
    if duration < 90 * 60:
        return f"{duration / 60:.0f} min"
    if duration < 48 * 3600:
        return f"{duration / 3600:.1f} hours"
    return f"{duration / 86400:.0f} days"
