"""Writing the model directories of a run: weights, description, tokenizers, card and shortlist."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from transduce.data.preparation import Prepared
from transduce.data.shortlist import Shortlist, learn_shortlist
from transduce.experiment import ExperimentConfig
from transduce.machine import Compute
from transduce.model_directory import Description, Languages, save_model
from transduce.pipeline.card import write_card
from transduce.progress import Progress
from transduce.training.state import TrainingProgress
from transduce.training.validation import Validation


@dataclass(frozen=True)
class TrainedModel:
    """A trained model: the steps averaged into it, its weights, and its validation."""

    steps: tuple[int, ...]
    weights: Mapping[str, Tensor]
    """Empty on all ranks but 0."""
    validation: Validation | None


@dataclass(frozen=True)
class ModelWriter:
    """Writes the models of one training."""

    experiment: ExperimentConfig
    prepared: Prepared
    compute: Compute
    figures: Mapping[str, Any]
    """The figures of the corpus for the card."""
    progress: Progress

    def write(self, model: TrainedModel, progress: TrainingProgress, folder: Path) -> None:
        """Write a model directory."""
        data, train = self.experiment.data, self.prepared.train
        progressed = {"step": progress.step, "epoch": progress.epoch, "tokens": progress.tokens}
        measures = model.validation.measures() if model.validation else {}
        scores = {key: float(str(value)) for key, value in measures.items()}
        card = write_card(
            self.experiment, self.compute, data=self.figures, steps=model.steps, progress=progress, scores=scores
        )
        unit = {"unit": data.unit} if data.text else {}
        description = Description(
            architecture=self.experiment.model,
            languages=Languages(source=data.source_language, target=data.target_language),
            targets=data.targets,
            longest_sentence=int((train.target_lengths if data.text else train.source_lengths).max(initial=1)),
            decoding=self.experiment.decoding.model_dump(mode="json", exclude_defaults=True),
            training={**progressed, "averaged": list(model.steps), "validation": scores, **unit},
        )
        save_model(
            folder,
            description,
            model.weights,
            tokenizers=self.prepared.tokenizers,
            card=card,
            training_hashes=None if data.text else self.prepared.training_hashes(data),
            shortlist=self._shortlist,
        )

    @cached_property
    def _shortlist(self) -> Shortlist | None:
        """The shortlist, learned from the corpus when the first model is written."""
        size = self.experiment.training.shortlist
        if not size:
            return None
        with self.progress.stage("learning a shortlist"):
            pair = self.prepared.tokenizers
            return learn_shortlist(
                self.prepared.train,
                size=size,
                special=pair.special,
                has_one_vocabulary=pair.has_one_vocabulary,
                source_end=pair.source_end,
            )
