"""The announcement of a run before its first step: its sizes, the time and disk space it needs on this machine."""

import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from transduce.machine import Compute
from transduce.networks.cost import parameter_count
from transduce.pipeline.run import Run
from transduce.pipeline.teaching import DIRECTIONS, DIVERSIFIED, TEACHERS
from transduce.pipeline.text_validation import TextValidator
from transduce.pipeline.validation import Validator
from transduce.progress import Silent
from transduce.training.config import TrainingConfig, seconds
from transduce.training.trainer import Trainer

# The best validation usually comes after this many epochs, from random weights and from those of a trained model. If
# an epoch has n > _STEPS_IN_EPOCH steps, fewer epochs suffice: multiply by √(_STEPS_IN_EPOCH / n).
_USUAL_EPOCHS, _USUAL_EPOCHS_OF_ADAPTATION = 60, 15
_STEPS_IN_EPOCH = 100
_FEWEST_TIMED = 20
_SENTENCES_MEASURED = 64
_STEPS_PER_FORWARD_PASS = 3  # a backward pass takes about twice as long as a forward pass
_BYTES_PER_SECOND = 150e6  # of a disk, flushing included


def announcement(run: Run) -> Iterator[str]:
    """Yield the lines that a user reads before training begins."""
    experiment, choice = run.experiment, run.choice
    training, model = experiment.training, experiment.model
    opened = run.training.on_prepared_text().opened()
    trainer = opened.trainer()
    steps = trainer.batches.steps(0)
    padding = trainer.batches.plan.padding(steps).share
    yield choice.in_words
    pieces = run.prepared.report.vocabulary_in_words
    yield f"{parameter_count(model):,} parameters: {model.in_words}, {pieces} pieces"
    valid = len(run.prepared.valid) if run.prepared.valid is not None else 0
    things = "blocks" if experiment.data.text else "pairs"
    yield (
        f"{len(run.prepared.train):,} {things} to train on, {valid:,} to validate; {len(steps):,} steps an epoch of at "
        f"most {training.batch_tokens:,} tokens a side, {padding:.1%} padding"
    )
    if (mixture := trainer.batches.mixture) is not None:
        yield "an epoch mixes the corpora: " + ", ".join(
            f"{count:,} pairs of {size:,}" for count, size in zip(mixture.counts, mixture.sizes, strict=True)
        )
    if training.teacher_steps is not None:
        yield (
            f"two teachers train first, {training.teacher_steps:,} steps each, in {run.folder / TEACHERS}; with their "
            f"translations there are about {DIVERSIFIED * len(run.prepared.train):,} pairs to train on"
        )
    costs = measured_costs(trainer, opened.validator(), parameters=parameter_count(model))
    yield _duration_line(costs, training, trainer.context.compute)
    yield f"about {disk_bytes(run) / 1e9:.2g} GB of disk for checkpoints in {run.folder}"
    yield (
        "Ctrl-C finishes the step and saves; the same command resumes. From the first validation on (step "
        f"{training.validate_every:,}), model/ holds the best model so far"
    )


def disk_bytes(run: Run) -> int:
    """Return the bytes of weights and two moments in the checkpoints kept, the best, and one being written."""
    training = run.experiment.training
    networks = 1 + (len(DIRECTIONS) if training.teacher_steps else 0)
    return networks * (training.keep_checkpoints + 2) * 3 * 4 * parameter_count(run.experiment.model)


def seconds_per_step(trainer: Trainer, *, during: float = 2.0) -> float:
    """Run steps for `during` seconds, and return the median of the later half; the weights do not change.

    The first step loads libraries and does not count. The next ones are slower than later ones too, because each new
    matrix size needs preparation, and there are some hundreds of sizes.
    """
    steps, stepper, durations = trainer.batches.steps(0), trainer.stepper, list[float]()
    while len(durations) < 2 or (sum(durations[1:]) < during and len(durations) <= max(len(steps), _FEWEST_TIMED)):
        started = time.monotonic()
        step = steps[len(durations) % len(steps)]
        for batch in trainer.batches.deal(step, epoch=0, rank=trainer.world.rank, ranks=trainer.world.size):
            stepper.accumulate(batch)
        if trainer.world.size == 1:  # an update may wait for other ranks, which may take fewer steps here
            stepper.optimizer.step(rate=0.0)
        durations.append(time.monotonic() - started)
    stepper.parameters.zero_gradients()
    return statistics.median(durations[1 + len(durations[1:]) // 2 :])


@dataclass(frozen=True)
class TrainingCosts:
    """The measured parts of a training's duration, in seconds, and its sizes."""

    step: float
    validation: float
    checkpoint: float
    steps_in_epoch: int
    """Steps of an epoch; with teachers, of the corpus with their translations."""

    def seconds(self, training: TrainingConfig, *, steps: int) -> float:
        """Return how long this many steps take, with all validations and checkpoints, also those at the end."""
        validations = steps // training.validate_every + 1
        every, of_steps = training.checkpoint_every, steps * self.step + validations * self.validation
        checkpoints = steps // every if isinstance(every, int) else int(of_steps / seconds(every))
        return of_steps + (checkpoints + validations) * self.checkpoint

    def usual_steps(self, training: TrainingConfig) -> int:
        """Return the usual number of steps until validation no longer improves, without a budget."""
        epochs = _USUAL_EPOCHS if training.start_from is None else _USUAL_EPOCHS_OF_ADAPTATION
        best = epochs * self.steps_in_epoch * min(1.0, math.sqrt(_STEPS_IN_EPOCH / self.steps_in_epoch))
        return training.validate_every * (math.ceil(best / training.validate_every) + (training.allowed_patience or 0))


def measured_costs(trainer: Trainer, validator: Validator | TextValidator | None, *, parameters: int) -> TrainingCosts:
    """Measure some steps and the translation of some validation sentences; every rank must call this."""
    step, training = seconds_per_step(trainer), trainer.config
    steps_in_epoch = len(trainer.batches.steps(0))
    validation = 0.0
    if isinstance(validator, TextValidator):
        passes = step * steps_in_epoch * len(validator.store) / len(trainer.batches.store)
        validation = passes / _STEPS_PER_FORWARD_PASS
    elif validator is not None:
        validator.progress = Silent()
        sentences = [validator.store.original(number)[0] for number in validator.chosen[:_SENTENCES_MEASURED]]
        validator.translate(sentences[:1])  # the first translation loads libraries
        started = time.monotonic()
        validator.translate(sentences)
        translation = (time.monotonic() - started) * len(validator.chosen) / len(sentences)
        passes = step * steps_in_epoch * len(validator.store) / len(trainer.batches.store)
        validation = translation + passes / _STEPS_PER_FORWARD_PASS
    diversified = 1 if training.teacher_steps is None else DIVERSIFIED
    checkpoint = 12 * parameters / _BYTES_PER_SECOND
    return TrainingCosts(step, validation, checkpoint, steps_in_epoch * diversified)


def _duration_line(costs: TrainingCosts, training: TrainingConfig, compute: Compute) -> str:
    of_teachers = costs.step * len(DIRECTIONS) * (training.teacher_steps or 0)
    here = f"{compute.threads} thread{'s' * (compute.threads != 1)}, {compute.precision}; {costs.step:.2g} s a step"
    budgets = [training.step_budget] if training.step_budget is not None else []
    budgets += [training.epochs * costs.steps_in_epoch] if training.epochs else []
    bounds = [costs.seconds(training, steps=min(budgets))] if budgets else []
    bounds += [seconds(training.time)] if training.time else []
    steps = costs.usual_steps(training)
    usual = costs.seconds(training, steps=steps)
    if bounds and (training.patience is None or min(bounds) < usual):
        return f"about {rough_duration(of_teachers + min(bounds))} here at most ({here})"
    return (
        f"about {rough_duration(of_teachers + usual)} here ({here}): it ends when validation has not improved "
        f"{training.allowed_patience} times, usually after some {steps:,} steps, sometimes half or twice as many"
    )


def rough_duration(duration: float) -> str:
    """Return a duration in seconds, minutes, hours or days, rounded."""
    if duration < 90:
        return f"{math.ceil(duration)} s"
    if duration < 90 * 60:
        return f"{duration / 60:.0f} min"
    if duration < 48 * 3600:
        return f"{duration / 3600:.1f} hours"
    return f"{duration / 86400:.0f} days"
