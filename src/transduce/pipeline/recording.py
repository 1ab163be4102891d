"""The files that a training writes for its user: samples.jsonl, report.html, and model/ with the best model so far."""

from pathlib import Path

from torch import Tensor

from transduce.errors import ModelError
from transduce.model_directory import read_description
from transduce.networks.cost import parameter_count
from transduce.networks.network import Network
from transduce.pipeline.model_writer import ModelWriter, TrainedModel
from transduce.pipeline.report import append_samples, validation_line, write_report
from transduce.training.checkpoint import Checkpoint, Checkpoints
from transduce.training.metrics import write_final
from transduce.training.resumption import CHECKPOINTS_FOLDER
from transduce.training.state import TrainingProgress
from transduce.training.trainer import Validated
from transduce.training.validation import Validation

MODEL = "model"


class Recorder:
    """Writes the samples, the report and the model of one training; only rank 0 calls it."""

    def __init__(self, folder: Path, writer: ModelWriter) -> None:
        self.folder, self.writer = folder, writer
        self.last_validation: Validation | None = None

    def add_validation(self, validated: Validated, network: Network) -> None:
        """Append the samples, write the model if it is the best so far, and write the report again."""
        self.last_validation, step = validated.validation, validated.progress.step
        append_samples(self.folder, step, validated.validation.samples)
        if validated.is_best or not (self.folder / MODEL).exists():
            self.write_model(TrainedModel((step,), _parameters(network), validated.validation), validated.progress)
        self.write_report("training", validated.progress, validated.validation)
        self.writer.progress.note(validation_line(validated))

    def add_final_validation(self, validation: Validation, progress: TrainingProgress) -> None:
        """Write the scores and samples of the finished model; the report and `compare` read them."""
        counts = {"epoch": progress.epoch, "tokens": progress.tokens, "seconds": round(progress.seconds, 3)}
        write_final(self.folder, progress.step, {**counts, **validation.measures()})
        append_samples(self.folder, progress.step, validation.samples)

    def catch_up_with_best(self) -> None:
        """Write the model of the best checkpoint if the run was killed before it wrote that."""
        newest = Checkpoints(self.folder / CHECKPOINTS_FOLDER).newest_whole()
        progress = newest.state().progress if newest else TrainingProgress()
        if progress.best is None:
            return
        try:
            known = read_description(self.folder / MODEL).training.get("step")
        except ModelError:
            known = None
        is_current = isinstance(known, int) and known >= progress.best.step  # of the best checkpoint or a later one
        best = checkpoint_of(self.folder, progress.best.step)
        if not is_current and best.fault() is None:
            self.write_model(TrainedModel((best.step,), best.model(), None), progress)

    def write_model(self, model: TrainedModel, progress: TrainingProgress) -> None:
        """Write model/."""
        self.writer.write(model, progress, self.folder / MODEL)

    def write_report(self, status: str, progress: TrainingProgress, validation: Validation | None) -> None:
        """Write report.html."""
        experiment, compute = self.writer.experiment, self.writer.compute
        facts = [
            ("step", f"{progress.step:,}"),
            ("epoch", f"{progress.epoch:,}"),
            ("time", f"{progress.seconds / 60:,.1f} min"),
            ("parameters", f"{parameter_count(experiment.model):,}"),
            ("training blocks" if experiment.data.text else "training pairs", f"{len(self.writer.prepared.train):,}"),
            ("threads, precision", f"{compute.threads}, {compute.precision}"),
        ]
        if validation is not None:
            facts.insert(2, ("validation perplexity", f"{validation.perplexity:.2f}"))
            if validation.bits_per_character is not None:
                bits = f"{validation.bits_per_character:.3f} and {validation.bits_per_byte:.3f}"
                facts.insert(3, ("bits per character and byte", bits))
            if validation.bleu is not None:
                facts.insert(3, ("validation BLEU", f"{validation.bleu:.1f}"))
        write_report(self.folder, experiment, status=status, facts=facts, data=self.writer.figures)


def checkpoint_of(folder: Path, step: int) -> Checkpoint:
    """Return the checkpoint of a step of the training in `folder`."""
    return Checkpoint(folder / CHECKPOINTS_FOLDER / f"step-{step:08d}", step)


def _parameters(network: Network) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in network.named_parameters()}
