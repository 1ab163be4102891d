"""The stage that trains a network, until its budget ends or validation no longer improves.

    FOLDER/checkpoints     the states that training resumes from and the next stage averages
    FOLDER/model           the best model so far
    FOLDER/metrics.jsonl, samples.jsonl, report.html, tensorboard/

`run` builds a trainer with its network, batches and identity, and discards it at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from pydantic import JsonValue

from transduce.architectures import reads_text_alone, stated
from transduce.data.mixture import Mixture
from transduce.data.preparation import Prepared
from transduce.data.token_store import TokenStore
from transduce.experiment import ExperimentConfig
from transduce.files import make_folder
from transduce.machine import Compute
from transduce.networks.network import Network
from transduce.pipeline.corpus_figures import corpus_figures, corpus_fingerprint
from transduce.pipeline.first_weights import first_network
from transduce.pipeline.model_writer import ModelWriter
from transduce.pipeline.planning import alters_the_trajectory
from transduce.pipeline.recording import Recorder
from transduce.pipeline.stages import RunStage, StageContext, StopRequested
from transduce.pipeline.text_validation import TextValidator
from transduce.pipeline.validation import Validator
from transduce.training.arithmetic import Arithmetic
from transduce.training.batches import TrainingBatches, pairs_that_fit, refuse_sampled_lengths
from transduce.training.checkpoint import Checkpoints
from transduce.training.resumption import CHECKPOINTS_FOLDER, compute_of_run
from transduce.training.state import TrainingProgress
from transduce.training.trainer import Ending, Trainer, TrainerContext, ending_at
from transduce.translator.generating import ENDS


class DerivedCorpus(RunStage, Protocol):
    """A stage that makes a token store to train on in place of the prepared one."""

    def store(self) -> TokenStore:
        """Return the store; every rank must call this."""

    def found(self) -> TokenStore | None:
        """Return the store if it is complete on this rank's disk."""

    def identity(self, store: TokenStore) -> dict[str, JsonValue]:
        """Return the values of the store that affect the weights, by dotted key."""

    def figures(self, store: TokenStore) -> dict[str, Any]:
        """Return the figures of the store for a card."""


@dataclass(frozen=True, eq=False)
class TrainingStage:
    """Trains one network in one folder."""

    name: str
    experiment: ExperimentConfig
    """The experiment, with the vocabulary size of the tokenizer."""
    folder: Path
    prepared: Prepared
    needs: Sequence[RunStage]
    context: StageContext
    corpus: DerivedCorpus | None = None
    """The stage that makes the corpus to train on, if not the prepared one; it is one of `needs`."""

    @property
    def result(self) -> Path:
        """The checkpoints."""
        return self.folder / CHECKPOINTS_FOLDER

    def is_done(self) -> bool:
        """Return whether the newest checkpoint belongs to this training and is its end."""
        if not self.context.world.is_main:
            return True
        store = self.prepared.train if self.corpus is None else self.corpus.found()
        newest = Checkpoints(self.result).newest_whole()
        if store is None or newest is None:
            return False
        state, trajectory = newest.state(), self.experiment.training.trajectory()
        identity = {**{f"training.{key}": value for key, value in trajectory.items()}, **self.identity(store)}
        is_this = all(state.identity.get(key) == value for key, value in identity.items())
        return is_this and ending_at(self.experiment.training, state.progress) is not None

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Train from the newest checkpoint, or from the beginning."""
        world, progress = self.context.world, self.context.progress
        progress.note(f"{self.name} in {self.folder}")
        if world.is_main:
            make_folder(self.folder)
        opened = self.opened()
        if world.is_main:
            opened.recorder.catch_up_with_best()
        outcome = opened.trainer(stop_requested=stop_requested).run()
        if outcome.ending is not Ending.STOPPED:
            return True
        if world.is_main:
            opened.recorder.write_report(STOPPED, outcome.progress, opened.recorder.last_validation)
        return False

    def store(self) -> TokenStore:
        """Return the pairs to train on; every rank must call this."""
        return self.prepared.train if self.corpus is None else self.corpus.store()

    def reached(self) -> TrainingProgress:
        """Return the progress of the newest checkpoint; every rank must call this."""
        newest = Checkpoints(self.result).newest_whole() if self.context.world.is_main else None
        progress = newest.state().progress if newest else TrainingProgress()
        return TrainingProgress.model_validate_json(self.context.world.broadcast_text(progress.model_dump_json()))

    def on_prepared_text(self) -> "TrainingStage":
        """Return the same training on the prepared text, for use before the derived corpus exists."""
        return replace(self, corpus=None)

    def opened(self) -> "OpenTraining":
        """Return this training in memory, with the initial weights of its network; every rank must call this."""
        store = self.store()
        compute = compute_of_run(self.experiment.training, self.folder, world=self.context.world)
        network = first_network(self.experiment, self.folder, self.prepared.tokenizers.special).to(compute.device)
        return OpenTraining(self, store, compute, network, self.recorder(store, compute))

    def recorder(self, store: TokenStore, compute: Compute) -> Recorder:
        """Return the recorder of a training on this store."""
        derived = {} if self.corpus is None else self.corpus.figures(store)
        figures = {**derived, **corpus_figures(self.prepared.report)}
        writer = ModelWriter(self.experiment, self.prepared, compute, figures, self.context.progress)
        return Recorder(self.folder, writer)

    def identity(self, store: TokenStore) -> dict[str, JsonValue]:
        """Return the values that affect the weights, by dotted key, besides the settings of training."""
        settings = {"model": stated(self.experiment.model), "data": self.experiment.data.stated()}
        named = {f"{section}.{key}": value for section, keys in settings.items() for key, value in keys.items()}
        derived = {} if self.corpus is None else self.corpus.identity(store)
        return {
            **{key: value for key, value in named.items() if alters_the_trajectory(key)},
            "data.fingerprint": corpus_fingerprint(self.prepared.report),
            **derived,
        }


STOPPED = "stopped; the same command resumes"
"""The status in the report of a stopped training."""


@dataclass(frozen=True, eq=False)
class OpenTraining:
    """A training in memory: its network, pairs, compute settings and recorder."""

    stage: TrainingStage
    store: TokenStore
    compute: Compute
    network: Network
    recorder: Recorder

    def trainer(self, *, stop_requested: StopRequested = lambda: False) -> Trainer:
        """Return the trainer of the network."""
        stage, config = self.stage, self.stage.experiment.training
        refuse_sampled_lengths(self.network, config)
        fits = pairs_that_fit(self.network, self.store)
        if fits is not None and not fits.all() and stage.context.world.is_main:
            stage.context.progress.warn(
                f"{int((~fits).sum()):,} of {len(fits):,} training pairs are left out: their targets are longer than "
                "this network can write for their sources (model.length_factor, model.length_extra)."
            )
        batches = TrainingBatches(
            self.store,
            config,
            tokenizers=stage.prepared.tokenizers,
            max_length=self.network.longest_sentence,
            mixture=Mixture.of(stage.experiment.data, self.store, seed=config.seed),
            fits=fits,
        )
        context = TrainerContext(
            folder=stage.folder,
            compute=self.compute,
            identity=stage.identity(self.store),
            validate=self.validator(),
            after_validation=partial(self.recorder.add_validation, network=self.network),
            stop_requested=stop_requested,
            world=stage.context.world,
            progress=stage.context.progress,
        )
        return Trainer(self.network, batches, config, context=context)

    def validator(self) -> Validator | TextValidator | None:
        """Return the validator of the network, or None without validation text."""
        prepared, training = self.stage.prepared, self.stage.experiment.training
        if prepared.valid is None or not len(prepared.valid):
            return None
        validator = TextValidator if reads_text_alone(self.stage.experiment.model) else Validator
        found: Validator | TextValidator = validator(
            self.network,
            prepared.valid,
            prepared.tokenizers,
            tokens_at_once=training.micro_batch_tokens or training.batch_tokens,
            arithmetic=Arithmetic(torch.device(self.compute.device), self.compute.precision),
            world=self.stage.context.world,
            progress=self.stage.context.progress,
        )
        if isinstance(found, TextValidator):
            found.end = ENDS.get(self.stage.experiment.data.unit)
        return found
