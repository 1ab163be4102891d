"""The stage that prepares a corpus, once on each disk that ranks use."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.architectures import own_source_vocabulary
from transduce.data.preparation import Prepared, is_prepared, prepare
from transduce.errors import DataError
from transduce.experiment import ExperimentConfig
from transduce.files import make_folder
from transduce.pipeline.planning import PREPARED
from transduce.pipeline.stages import RunStage, StageContext, StopRequested


@dataclass(frozen=True, eq=False)
class Preparation:
    """Reads, cleans and encodes the text of an experiment (`data/preparation.py`)."""

    experiment: ExperimentConfig
    folder: Path
    context: StageContext
    name: str = "preparing the corpus"
    needs: Sequence[RunStage] = ()

    @property
    def result(self) -> Path:
        """The tokenizer and the token stores."""
        return self.folder / PREPARED

    def is_done(self) -> bool:
        """Return whether the token stores exist, made from the current text."""
        model = self.experiment.model
        return is_prepared(
            self.experiment.data,
            self.result,
            vocabulary_size=model.vocabulary_size,
            source_vocabulary_size=own_source_vocabulary(model),
        )

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Prepare the corpus; a kill loses little work, so this ignores `stop_requested`."""
        self.prepared()
        return True

    def prepared(self) -> Prepared:
        """Prepare the corpus unless it is prepared, and return it.

        Raises DataError if the corpora of the ranks differ, or if no pair is left.
        """
        world = self.context.world
        prepared = world.in_turns(self._prepare, doing="preparing the corpus")
        if not len(prepared.train):
            raise DataError("Nothing is left to train on after cleaning and holding out. Look at data/dropped.tsv.")
        own = prepared.report.model_dump_json(include={"splits", "vocabulary_size", "tokenizer_sha256"})
        differing = [str(rank) for rank, found in enumerate(world.gather_texts(own)) if found != own]
        if differing:
            raise DataError(
                f"The corpus that rank {world.rank} prepared in {self.result} differs from that of ranks "
                f"{', '.join(differing)}. Give every machine the same text, or let them share one disk."
            )
        return prepared

    def _prepare(self) -> Prepared:
        make_folder(self.folder)
        model = self.experiment.model
        return prepare(
            self.experiment.data,
            self.result,
            vocabulary_size=model.vocabulary_size,
            source_vocabulary_size=own_source_vocabulary(model),
            progress=self.context.progress,
        )
