"""A run from text to model: prepare, train, validate, average, card, report.

    runs/en-de/
      experiment.toml  metrics.jsonl  samples.jsonl  report.html  tensorboard/
      data/            the tokenizer and the token stores
      teachers/        with training.teacher_steps: who translated the corpus, and what it became
      checkpoints/     where training goes on from
      model/           what to translate with: the best so far, in the end the average

Killed at any moment and started again, it ends with the same weights.
"""

import contextlib
import gc
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.architectures import parameter_count, stated, with_vocabularies
from transduce.compute import Compute, settle
from transduce.data.preparation import Prepared
from transduce.data.token_store import TokenStore
from transduce.errors import ModelError
from transduce.files import disk_faults_explained, locked, sweep
from transduce.model_directory import read_description
from transduce.networks.network import Network
from transduce.pipeline.corpus_figures import corpus_figures, corpus_fingerprint
from transduce.pipeline.diversification import TEACHERS, Direction, Diversification, teacher
from transduce.pipeline.first_weights import first_network
from transduce.pipeline.making import Made, Maker
from transduce.pipeline.planning import Choice, alters_the_trajectory, keep_experiment
from transduce.pipeline.preparing import prepared_on_every_rank
from transduce.pipeline.report import REPORT, append_samples, validation_line, write_report
from transduce.pipeline.validation import Validator
from transduce.progress import Progress, Silent
from transduce.training.arithmetic import Arithmetic
from transduce.training.averaging import average_last
from transduce.training.batches import TrainingBatches
from transduce.training.checkpoint import Checkpoint, Checkpoints
from transduce.training.distributed import World, join_world
from transduce.training.resumption import CHECKPOINTS_FOLDER, settle_compute
from transduce.training.state import Progressed
from transduce.training.trainer import Ending, Outcome, Surroundings, Trainer, Validated
from transduce.training.validation import Validation

LOCK = "run.lock"
_WITH_TEACHERS = "train pairs with the teachers' translations"


@dataclass(frozen=True)
class Finished:
    """How a run ended."""

    outcome: Outcome
    model: Path
    report: Path
    validation: Validation | None
    averaged: tuple[int, ...]


class Run:
    """A run directory being worked on: its experiment, its corpus, its network."""

    def __init__(
        self,
        choice: Choice,
        output: Path,
        *,
        progress: Progress,
        world: World,
        prepared: Prepared | None = None,
    ) -> None:
        self.choice, self.folder, self.progress, self.world = choice, output, progress, world
        self.experiment = choice.experiment
        self.compute: Compute = settle_compute(self.experiment.training, output, world=world)
        self.prepared = prepared or prepared_on_every_rank(self.experiment, output, world=world, progress=progress)
        tokenizers = self.prepared.tokenizers
        sized = with_vocabularies(
            self.experiment.model, target=tokenizers.vocabulary_size, source=tokenizers.source_vocabulary_size
        )
        self.experiment = self.experiment.model_copy(update={"model": sized})
        self.network = first_network(self.experiment, output, tokenizers.special)
        self.network.to(self.compute.device)
        self.batches = self._batches(self.prepared.train)
        self.validator = self._validator()
        self.maker = Maker(self.experiment, self.prepared, self.compute, progress)
        self.stop_requested: Callable[[], bool] = lambda: False
        self.last_validation: Validation | None = None
        self.trainer = Trainer(
            self.network,
            self.batches,
            self.experiment.training,
            surroundings=Surroundings(
                folder=output,
                compute=self.compute,
                identity=self._identity(),
                validate=self.validator,
                after_validation=self._after_validation,
                stop_requested=lambda: self.stop_requested(),
                world=world,
                progress=progress,
            ),
        )

    def train(self, *, stop_requested: Callable[[], bool]) -> Finished:
        """Train to the end of the budget, then leave the finished model."""
        self.stop_requested = stop_requested
        if self.experiment.training.teacher_steps is not None:
            corpus = self._diversification().corpus()
            if corpus is None:
                self.progress.note("stopped among the teachers; what they have learned and written is saved")
                return self._stopped(Outcome(Ending.STOPPED, Progressed()))
            self._learn_from(corpus)
        if self.world.is_main:
            self._catch_up_with_best()
        outcome = self.trainer.run()
        if outcome.ending is Ending.STOPPED:
            return self._stopped(outcome)
        return self._finish(outcome)

    def _batches(self, store: TokenStore) -> TrainingBatches:
        return TrainingBatches(
            store,
            self.experiment.training,
            tokenizers=self.prepared.tokenizers,
            max_length=self.network.longest_sentence,
        )

    def _diversification(self) -> Diversification:
        def teach(direction: Direction, folder: Path, prepared: Prepared) -> Path | None:
            choice = replace(self.choice, experiment=teacher(self.experiment, direction))
            self.progress.note(f"training the {direction} teacher in {folder}")
            run = Run(choice, folder, progress=self.progress, world=self.world, prepared=prepared)
            finished = run.train(stop_requested=self.stop_requested)
            del run
            gc.collect()  # a run refers to itself; its network and moments must not wait for the collector
            return None if finished.outcome.ending is Ending.STOPPED else finished.model

        return Diversification(
            self.experiment,
            self.prepared,
            self.folder / TEACHERS,
            teach=teach,
            stop_requested=self.stop_requested,
            threads=self.compute.threads,
            world=self.world,
            progress=self.progress,
        )

    def _learn_from(self, corpus: TokenStore) -> None:
        """Take the teachers' corpus in place of the one that was prepared."""
        settle(threads=self.compute.threads, precision=self.compute.precision)  # teachers may have begun with others
        self.batches = self.trainer.batches = self._batches(corpus)
        self.trainer.identity["data.written_by_teachers"] = corpus.notes["written"]

    def _figures(self) -> dict[str, Any]:
        diversified = {} if self.batches.store is self.prepared.train else {_WITH_TEACHERS: len(self.batches.store)}
        return {**diversified, **corpus_figures(self.prepared.report)}

    def _validator(self) -> Validator | None:
        if self.prepared.valid is None or not len(self.prepared.valid):
            return None
        training = self.experiment.training
        return Validator(
            self.network,
            self.prepared.valid,
            self.prepared.tokenizers,
            tokens_at_once=training.micro_batch_tokens or training.batch_tokens,
            arithmetic=Arithmetic(torch.device(self.compute.device), self.compute.precision),
            world=self.world,
            progress=self.progress,
        )

    def _identity(self) -> dict[str, Any]:
        settings = {"model": stated(self.experiment.model), "data": self.experiment.data.stated()}
        named = {f"{section}.{key}": value for section, keys in settings.items() for key, value in keys.items()}
        identity = {key: value for key, value in named.items() if alters_the_trajectory(key)}
        return {**identity, "data.fingerprint": corpus_fingerprint(self.prepared.report)}

    def _after_validation(self, validated: Validated) -> None:
        self.last_validation = validated.validation
        step = validated.progress.step
        append_samples(self.folder, step, validated.validation.samples)
        if validated.is_best or not (self.folder / "model").exists():
            made = Made((step,), _parameters(self.network), validated.validation)
            self._save_model(made, validated.progress)
        self._write_report("training", validated.progress, validated.validation)
        self.progress.note(validation_line(validated))

    def _catch_up_with_best(self) -> None:
        """Write the model of the best checkpoint if a kill fell between the two."""
        newest = Checkpoints(self.folder / CHECKPOINTS_FOLDER).newest_whole()
        progress = newest.state().progress if newest else Progressed()
        if progress.best is None:
            return
        steps = (progress.best.step,)
        try:
            known = read_description(self.folder / "model").training.get("step")
        except ModelError:
            known = None
        is_current = isinstance(known, int) and known >= progress.best.step  # that best, or what came after it
        best = self._checkpoint(progress.best.step)
        if not is_current and best.fault() is None:
            self._save_model(Made(steps, best.model(), None), progress)

    def _checkpoint(self, step: int) -> Checkpoint:
        return Checkpoint(self.folder / CHECKPOINTS_FOLDER / f"step-{step:08d}", step)

    def _stopped(self, outcome: Outcome) -> Finished:
        if self.world.is_main:
            self._write_report("stopped; the same command goes on", outcome.progress, self.last_validation)
        return Finished(outcome, self.folder / "model", self.folder / REPORT, self.last_validation, ())

    def _finish(self, outcome: Outcome) -> Finished:
        """Leave the model that the run ends with."""
        made = self._made(outcome)
        if self.world.is_main:
            self._save_model(made, outcome.progress)
            self._write_report(f"finished: {outcome.ending.value}", outcome.progress, made.validation)
        return Finished(outcome, self.folder / "model", self.folder / REPORT, made.validation, made.steps)

    def _made(self, outcome: Outcome) -> Made:
        """Average the last checkpoints (6.1); take the average unless the best single checkpoint is better."""
        steps, weights = self._average()
        validation = self._validate_with(weights)
        best = outcome.progress.best
        if validation is None or best is None or _at_least_as_good(validation, best.measure, best.value):
            return Made(steps, weights, validation)
        self.progress.note(
            f"The average of steps {_listed(steps)} is worse on validation than the checkpoint of step "
            f"{best.step:,} ({best.measure} {best.value:.4g}), so model/ stays that checkpoint."
        )
        # The model on the disk may be an older best: a kill can fall between a checkpoint and its model.
        weights = self._checkpoint(best.step).model() if self.world.is_main else {}
        return Made((best.step,), weights, self._validate_with(weights))

    def _average(self) -> tuple[tuple[int, ...], dict[str, Tensor]]:
        """Return the averaged steps on every rank, and on rank 0, which has the checkpoints, their weights."""
        averaged = None
        if self.world.is_main:
            averaged = average_last(self.folder, last=self.experiment.training.average_last)
        steps = json.loads(self.world.broadcast_text(json.dumps(averaged.steps if averaged else ())))
        return tuple(steps), averaged.weights if averaged else {}

    def _validate_with(self, weights: Mapping[str, Tensor]) -> Validation | None:
        """Validate with rank 0's weights, which thereby become the network's."""
        if self.validator is None:
            return None
        own = dict(self.network.named_parameters())
        with torch.no_grad():
            for name, tensor in weights.items():
                own[name].copy_(tensor)
        self.world.broadcast_(self.trainer.stepper.parameters.values)
        return self.validator()

    def _save_model(self, made: Made, progress: Progressed) -> None:
        self.maker.write(made, progress, self.folder / "model", figures=self._figures())

    def _write_report(self, status: str, progress: Progressed, validation: Validation | None) -> Path:
        facts = [
            ("step", f"{progress.step:,}"),
            ("epoch", f"{progress.epoch:,}"),
            ("time", f"{progress.seconds / 60:,.1f} min"),
            ("parameters", f"{parameter_count(self.experiment.model):,}"),
            ("training pairs", f"{len(self.prepared.train):,}"),
            ("threads, precision", f"{self.compute.threads}, {self.compute.precision}"),
        ]
        if validation is not None:
            facts.insert(2, ("validation perplexity", f"{validation.perplexity:.2f}"))
            if validation.bleu is not None:
                facts.insert(3, ("validation BLEU", f"{validation.bleu:.1f}"))
        return write_report(self.folder, self.experiment, status=status, facts=facts, data=self._figures())


@contextlib.contextmanager
def opened_run(choice: Choice, output: Path, *, progress: Progress) -> Iterator[Run]:
    """Open a run for one process, or for the ranks that torchrun started; a second opener is refused.

    Of several ranks only rank 0 reports.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with join_world(device=device, timeout=choice.experiment.training.rank_timeout) as world:
        lock = locked(output / LOCK, purpose="training") if world.is_main else contextlib.nullcontext()
        with lock, disk_faults_explained(output):
            if world.is_main:
                sweep(output)
                keep_experiment(choice.experiment, output)
            yield Run(choice, output, progress=progress if world.is_main else Silent(), world=world)


def _parameters(network: Network) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in network.named_parameters()}


def _at_least_as_good(validation: Validation, measure: str, best: float) -> bool:
    value = validation.loss if measure == "loss" else validation.bleu
    assert value is not None
    return value <= best if measure == "loss" else value >= best


def _listed(steps: tuple[int, ...]) -> str:
    return ", ".join(f"{step:,}" for step in steps)
