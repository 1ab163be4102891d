"""The last stage of a training: average its last checkpoints into the model (section 6.1).

    FOLDER/model            the average, or the best single checkpoint if that is better on validation
    FOLDER/finished.json    a hash of the settings, and how training ended; written last

`transduce average` runs `average_run`, which averages as many checkpoints as the user asks for.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from pydantic import BaseModel
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
from transduce.sealed_record import sealed, unsealed
from transduce.training.averaging import average_last
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import REMOVED
from transduce.training.state import TrainingProgress
from transduce.training.trainer import Ending, ending_at
from transduce.training.validation import Validation
from transduce.translator import Translator
from transduce.translator.calibrating import FEWEST_PAIRS, calibrate
from transduce.translator.calibration import write_calibration

FINISHED = "finished.json"
_MOST_CALIBRATED = 1000  # pairs; their translation takes time
_WITHOUT_INFLUENCE = frozenset(
    {"threads", "checkpoint_every", "keep_checkpoints", "validate_every", "report_every", "tensorboard", "rank_timeout"}
)
"""Settings of training that do not affect the finished model."""


class FinishedTraining(BaseModel, frozen=True, extra="forbid"):
    """The contents of finished.json."""

    settings: str
    """The SHA-256 of the settings and the corpus that the model was made with."""
    model: str
    """The SHA-256 of the model's manifest."""
    ending: Ending
    step: int
    averaged: tuple[int, ...]
    loss: float | None = None
    accuracy: float | None = None
    bleu: float | None = None
    bits_per_character: float | None = None
    bits_per_byte: float | None = None

    @property
    def validation(self) -> Validation | None:
        """The scores of the model on the validation text, or None without such text."""
        if self.loss is None:
            return None
        return Validation(self.loss, self.accuracy, self.bleu, self.bits_per_character, self.bits_per_byte)


@dataclass(frozen=True, eq=False)
class AveragingStage:
    """Averages the last checkpoints of a training into its model."""

    training: TrainingStage
    calibrates: bool = False
    """Whether the finished model gets a calibration, from the validation text."""

    @property
    def name(self) -> str:
        """The name of the stage in messages to the user."""
        return f"{self.training.name}: averaging checkpoints"

    @property
    def folder(self) -> Path:
        """The folder of the training."""
        return self.training.folder

    @property
    def result(self) -> Path:
        """The model directory."""
        return self.folder / MODEL

    @property
    def needs(self) -> Sequence[RunStage]:
        """The training."""
        return (self.training,)

    @property
    def context(self) -> StageContext:
        """The context of the training."""
        return self.training.context

    def is_done(self) -> bool:
        """Return whether the model is complete and was made with the current settings."""
        if not self.context.world.is_main:
            return True
        found = self._found()
        if found is None or found.settings != self._settings():
            return False
        is_that_model = (self.result / MANIFEST).is_file() and sha256_of_file(self.result / MANIFEST) == found.model
        return is_that_model and manifest_fault(self.result) is None

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Average, validate and write the model; this is quick, so it ignores `stop_requested`."""
        progress, config = self.training.reached(), self.training.experiment.training
        ending = ending_at(config, progress)
        assert ending is not None, "this training has ended"
        if self.context.world.is_main:  # the run may have been killed between its last checkpoint and the pruning
            checkpoints = Checkpoints(self.training.result)
            checkpoints.remove_leftovers()
            checkpoints.prune(keep=config.keep_checkpoints, best_step=progress.best.step if progress.best else None)
        opened = self.training.opened()
        model = self._average(opened, progress)
        if self.context.world.is_main:
            opened.recorder.write_model(model, progress)
            if model.validation is not None:
                opened.recorder.add_final_validation(model.validation, progress)
            opened.recorder.write_report(f"finished: {ending.value}", progress, model.validation)
            self._record(model, progress, ending)
            if self.calibrates:
                self._calibrate(threads=opened.compute.threads)
        return True

    def _calibrate(self, *, threads: int | None) -> None:
        valid = self.training.prepared.valid
        count = min(len(valid) if valid else 0, _MOST_CALIBRATED)
        data = self.training.experiment.data
        if valid is None or count < FEWEST_PAIRS or data.text or data.has_trees:
            return  # for too few pairs, `translate --leave-below` says what to do
        with self.context.progress.stage("calibrating", unit="models"):
            translator = Translator.load(self.result, threads=threads)
            write_calibration(self.result, calibrate(translator, [valid.original(n) for n in range(count)]))

    def finished(self) -> FinishedTraining:
        """Return how training ended; every rank must call this, once the stage is done."""
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
        # The model on disk may be older: the run may have been killed between the checkpoint and its model.
        weights = checkpoint_of(self.folder, best.step).model() if self.context.world.is_main else {}
        return TrainedModel((best.step,), weights, self._validate(opened, weights))

    def _validate(self, opened: OpenTraining, weights: Mapping[str, Tensor]) -> Validation | None:
        """Copy the weights of rank 0 into the network on every rank, and validate it."""
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
        training = experiment.training.model_dump(mode="json", exclude=set(_WITHOUT_INFLUENCE)) | REMOVED
        decoding = experiment.decoding.model_dump(mode="json", exclude={"keep_placeholders", "keep_form"})
        kept = [stated(experiment.model), decoding, training]
        corpus = corpus_fingerprint(self.training.prepared.report)
        return hashlib.sha256(json.dumps([corpus, kept], sort_keys=True).encode()).hexdigest()

    def _found(self) -> FinishedTraining | None:
        try:
            return FinishedTraining.model_validate(unsealed((self.folder / FINISHED).read_bytes()))
        except (OSError, ValueError):
            return None

    def _record(self, model: TrainedModel, progress: TrainingProgress, ending: Ending) -> None:
        measured = {} if model.validation is None else asdict(model.validation)
        measured.pop("samples", None)
        finished = FinishedTraining(
            settings=self._settings(),
            model=sha256_of_file(self.result / MANIFEST),
            ending=ending,
            step=progress.step,
            averaged=model.steps,
            **measured,
        )
        write_atomically(self.folder / FINISHED, sealed(json.loads(finished.model_dump_json())))


def _is_at_least_as_good(validation: Validation, measure: str, best: float) -> bool:
    value = validation.loss if measure == "loss" else validation.bleu
    assert value is not None
    return value <= best if measure == "loss" else value >= best


def average_run(run: Path, *, last: int) -> tuple[int, ...]:
    """Average the newest `last` checkpoints of a run into its model, and return their steps."""
    if not (run / MODEL).is_dir():
        raise RunError(f"{run} has no model before its first validation. Continue training, then average.")
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
