"""The stage that ends a training: the average of its last checkpoints as the model (section 6.1).

    FOLDER/model            the average, or the best single checkpoint where that is better on validation
    FOLDER/finished.json    with which settings it was made, and how training ended; written last

`transduce average` makes another average of the checkpoints by hand.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import BaseModel, ValidationError
from torch import Tensor

from transduce.architectures import stated
from transduce.errors import RunError
from transduce.files import MANIFEST, locked, manifest_fault, sha256_of_file, write_atomically
from transduce.model_directory import load_model, save_model
from transduce.pipeline.corpus_figures import corpus_fingerprint
from transduce.pipeline.model_writer import TrainedModel
from transduce.pipeline.planning import LOCK
from transduce.pipeline.recording import MODEL, checkpoint_of
from transduce.pipeline.stages import RunStage, StageContext, StopRequested
from transduce.pipeline.training_stage import OpenTraining, TrainingStage
from transduce.training.averaging import average_last
from transduce.training.checkpoint import Checkpoints
from transduce.training.state import TrainingProgress
from transduce.training.trainer import Ending, ending_at
from transduce.training.validation import Validation

_FINISHED = "finished.json"
_WITHOUT_INFLUENCE = frozenset(
    {"threads", "checkpoint_every", "keep_checkpoints", "validate_every", "report_every", "tensorboard", "rank_timeout"}
)
"""Settings of training with which a finished model stays as it is."""


class FinishedTraining(BaseModel, frozen=True, extra="forbid"):
    """The contents of finished.json."""

    settings: str
    """The SHA-256 of the settings and the corpus that the model follows from."""
    model: str
    """The SHA-256 of the model's manifest."""
    ending: Ending
    step: int
    averaged: tuple[int, ...]
    loss: float | None
    accuracy: float | None
    bleu: float | None

    @property
    def validation(self) -> Validation | None:
        """How good the model is on the validation text, or None where there is none."""
        return None if self.loss is None else Validation(self.loss, self.accuracy, self.bleu)


@dataclass(frozen=True, eq=False)
class AveragingStage:
    """Averages the last checkpoints of a training into its model."""

    training: TrainingStage

    @property
    def name(self) -> str:
        """What it does, in words for a user."""
        return f"{self.training.name}: averaging checkpoints"

    @property
    def folder(self) -> Path:
        """That of the training."""
        return self.training.folder

    @property
    def leaves(self) -> Path:
        """The model directory."""
        return self.folder / MODEL

    @property
    def needs(self) -> Sequence[RunStage]:
        """The training."""
        return (self.training,)

    @property
    def context(self) -> StageContext:
        """That of the training."""
        return self.training.context

    def is_done(self) -> bool:
        """Return whether the model is whole and was made with the settings as they are now."""
        if not self.context.world.is_main:
            return True
        found = self._found()
        if found is None or found.settings != self._settings():
            return False
        is_that_model = (self.leaves / MANIFEST).is_file() and sha256_of_file(self.leaves / MANIFEST) == found.model
        return is_that_model and manifest_fault(self.leaves) is None

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Average, validate and write the model; it takes a moment, so nothing asks it to stop."""
        progress, config = self.training.reached(), self.training.experiment.training
        ending = ending_at(config, progress)
        assert ending is not None, "this training has ended"
        if self.context.world.is_main:  # a kill may have fallen between the last checkpoint and the pruning after it
            checkpoints = Checkpoints(self.training.leaves)
            checkpoints.sweep()
            checkpoints.prune(keep=config.keep_checkpoints, best_step=progress.best.step if progress.best else None)
        opened = self.training.opened()
        model = self._average(opened, progress)
        if self.context.world.is_main:
            opened.recorder.write_model(model, progress)
            opened.recorder.write_report(f"finished: {ending.value}", progress, model.validation)
            self._record(model, progress, ending)
        return True

    def finished(self) -> FinishedTraining:
        """Return how training ended; every rank must ask, once this stage is done."""
        own = self._found() if self.context.world.is_main else None
        text = self.context.world.broadcast_text(own.model_dump_json() if own else "")
        return FinishedTraining.model_validate_json(text)

    def _average(self, opened: OpenTraining, progress: TrainingProgress) -> TrainedModel:
        """Average the last checkpoints; return the average unless the best single checkpoint is better."""
        last = self.training.experiment.training.average_last
        averaged = average_last(self.folder, last=last) if self.context.world.is_main else None
        steps = json.loads(self.context.world.broadcast_text(json.dumps(averaged.steps if averaged else ())))
        weights: Mapping[str, Tensor] = averaged.weights if averaged else {}
        validation, best = self._validate(opened, weights), progress.best
        if validation is None or best is None or _is_at_least_as_good(validation, best.measure, best.value):
            return TrainedModel(tuple(steps), weights, validation)
        listed = ", ".join(f"{step:,}" for step in steps)
        self.context.progress.note(
            f"The average of steps {listed} is worse on validation than the checkpoint of step {best.step:,} "
            f"({best.measure} {best.value:.4g}), so model/ stays that checkpoint."
        )
        # The model on the disk may be an older best: a kill can fall between a checkpoint and its model.
        weights = checkpoint_of(self.folder, best.step).model() if self.context.world.is_main else {}
        return TrainedModel((best.step,), weights, self._validate(opened, weights))

    def _validate(self, opened: OpenTraining, weights: Mapping[str, Tensor]) -> Validation | None:
        """Validate with the weights of rank 0, which replace the network's on every rank."""
        validator = opened.validator()
        if validator is None:
            return None
        with torch.no_grad():
            for name, parameter in opened.network.named_parameters():
                if name in weights:
                    parameter.copy_(weights[name])
                self.context.world.broadcast_(parameter.data)
        return validator()

    def _settings(self) -> str:
        experiment = self.training.experiment
        training = experiment.training.model_dump(mode="json", exclude=set(_WITHOUT_INFLUENCE))
        kept = [stated(experiment.model), experiment.decoding.model_dump(mode="json"), training]
        corpus = corpus_fingerprint(self.training.prepared.report)
        return hashlib.sha256(json.dumps([corpus, kept], sort_keys=True).encode()).hexdigest()

    def _found(self) -> FinishedTraining | None:
        try:
            return FinishedTraining.model_validate_json((self.folder / _FINISHED).read_bytes())
        except (OSError, ValidationError):
            return None

    def _record(self, model: TrainedModel, progress: TrainingProgress, ending: Ending) -> None:
        validation = model.validation
        finished = FinishedTraining(
            settings=self._settings(),
            model=sha256_of_file(self.leaves / MANIFEST),
            ending=ending,
            step=progress.step,
            averaged=model.steps,
            loss=validation.loss if validation else None,
            accuracy=validation.accuracy if validation else None,
            bleu=validation.bleu if validation else None,
        )
        write_atomically(self.folder / _FINISHED, finished.model_dump_json(indent=1) + "\n")


def _is_at_least_as_good(validation: Validation, measure: str, best: float) -> bool:
    value = validation.loss if measure == "loss" else validation.bleu
    assert value is not None
    return value <= best if measure == "loss" else value >= best


def average_run(run: Path, *, last: int) -> tuple[int, ...]:
    """Average the newest `last` checkpoints of a run into its model by hand, and return their steps."""
    if not (run / MODEL).is_dir():
        raise RunError(f"{run} has no model yet: it gets one at its first validation. Train on, then average.")
    with locked(run / LOCK, purpose="averaging"):
        model = load_model(run / MODEL)
        averaged = average_last(run, last=last)
        training = {**model.description.training, "averaged": list(averaged.steps)}
        training.pop("validation", None)  # measured on other weights
        description = model.description.model_copy(update={"training": training, "weights": "float32"})
        card = (model.folder / "README.md").read_text(encoding="utf-8")
        note = f"> Averaged by hand from the checkpoints of steps {', '.join(map(str, averaged.steps))}.\n\n"
        save_model(
            model.folder,
            description,
            averaged.weights,
            tokenizers=model.tokenizers,
            card=note + card,
            training_hashes=model.training_hashes(),
            shortlist=model.shortlist(),
        )
    return averaged.steps
