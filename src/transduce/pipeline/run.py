"""A run from text to model, planned as a list of stages.

    runs/en-de/
      experiment.toml  metrics.jsonl  samples.jsonl  report.html  tensorboard/  finished.json
      data/            the tokenizer and the token stores                  `preparing.py`
      teachers/        with training.teacher_steps: the teachers'          `teaching.py`, `translating.py`
                       checkpoints, translations, and the new corpus
      checkpoints/     the states from which training can resume           `training_stage.py`
      model/           the best model so far, and at the end the average   `averaging.py`

A run that is killed at any moment and started again ends with the same weights.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from transduce.architectures import with_vocabularies
from transduce.data.corpus_check import check_corpora
from transduce.files import disk_faults_explained, locked, remove_leftovers
from transduce.pipeline.averaging import AveragingStage
from transduce.pipeline.planning import LOCK, Choice, has_learned, keep_experiment
from transduce.pipeline.preparing import Preparation
from transduce.pipeline.recording import MODEL
from transduce.pipeline.report import REPORT
from transduce.pipeline.stages import RunStage, StageContext, StopRequested, run_stages
from transduce.pipeline.teaching import TeachersCorpus, teaching_stages
from transduce.pipeline.training_stage import STOPPED, TrainingStage
from transduce.progress import Progress, Silent
from transduce.training.distributed import join_world
from transduce.training.resumption import compute_of_run
from transduce.training.trainer import Ending, require_an_end
from transduce.training.validation import Validation


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended, and where its results are."""

    ending: Ending
    step: int
    """The last training step."""
    model: Path
    """The model directory; a run that was stopped has one from its first validation on."""
    report: Path
    """The page with curves and samples."""
    validation: Validation | None
    """The scores of the finished model on the validation text; None without such text, or if the run was stopped."""
    averaged: tuple[int, ...]
    """The steps whose checkpoints were averaged into the model; none if the run was stopped."""


class Run:
    """An open run directory: its experiment, its prepared corpus, and its stages."""

    def __init__(self, choice: Choice, folder: Path, context: StageContext) -> None:
        """Plan the stages; the first, preparation, runs at once, because the others need its vocabulary size."""
        self.choice, self.folder, self.context = choice, folder, context
        self.compute = compute_of_run(choice.experiment.training, folder, world=context.world)
        preparation = Preparation(choice.experiment, folder, context)
        if not choice.experiment.data.text and not has_learned(folder) and not preparation.is_done():
            adapts = choice.experiment.training.start_from is not None
            check_corpora(choice.experiment.data, adapts=adapts, progress=context.progress)
        self.prepared = preparation.prepared()
        model, tokenizers = choice.experiment.model, self.prepared.tokenizers
        sized = with_vocabularies(model, target=tokenizers.vocabulary_size, source=tokenizers.source_vocabulary_size)
        self.experiment = choice.experiment.model_copy(update={"model": sized})
        require_an_end(self.experiment.training, validates=bool(self.prepared.valid))
        stages: list[RunStage] = [preparation]
        corpus: TeachersCorpus | None = None
        if self.experiment.training.teacher_steps is not None:
            teaching, corpus = teaching_stages(
                self.experiment, self.prepared, folder, threads=self.compute.threads, preparation=preparation
            )
            stages += [*teaching, corpus]
        needs = (preparation,) if corpus is None else (preparation, corpus)
        self.training = TrainingStage("training", self.experiment, folder, self.prepared, needs, context, corpus)
        self.averaging = AveragingStage(self.training, calibrates=True)
        self.stages = [*stages, self.training, self.averaging]

    @property
    def progress(self) -> Progress:
        """The progress report of the run; silent on all ranks but 0."""
        return self.context.progress

    def train(self, *, stop_requested: StopRequested) -> TrainingResult:
        """Run the stages that are not done, to the finished model."""
        model, report = self.folder / MODEL, self.folder / REPORT
        stopped = run_stages(self.stages, context=self.context, stop_requested=stop_requested)
        if stopped is None:
            finished = self.averaging.finished()
            return TrainingResult(finished.ending, finished.step, model, report, finished.validation, finished.averaged)
        progress = self.training.reached()
        if stopped is not self.training:
            self.progress.note(f"stopped: {stopped.name}; everything so far is saved")
            if self.context.world.is_main:
                recorder = self.training.on_prepared_text().recorder(self.prepared.train, self.compute)
                recorder.write_report(STOPPED, progress, None)
        return TrainingResult(Ending.STOPPED, progress.step, model, report, None, ())


@contextlib.contextmanager
def opened_run(choice: Choice, output: Path, *, progress: Progress) -> Iterator[Run]:
    """Open a run for one process, or for the ranks that torchrun started, and lock it against other processes.

    Only rank 0 reports progress.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with join_world(device=device, timeout=choice.experiment.training.rank_timeout) as world:
        lock = locked(output / LOCK, purpose="training") if world.is_main else contextlib.nullcontext()
        with lock, disk_faults_explained(output):
            if world.is_main:
                remove_leftovers(output)
                keep_experiment(choice.experiment, output)
            yield Run(choice, output, StageContext(world, progress if world.is_main else Silent()))
