"""The corpus of a run, prepared once where ranks share a disk and on every machine where they do not."""

from pathlib import Path

from transduce.architectures import own_source_vocabulary
from transduce.data.preparation import Prepared, prepare
from transduce.errors import DataError
from transduce.experiment import ExperimentConfig
from transduce.files import make_folder
from transduce.pipeline.planning import PREPARED
from transduce.progress import Progress
from transduce.training.distributed import World


def prepared_on_every_rank(experiment: ExperimentConfig, folder: Path, *, world: World, progress: Progress) -> Prepared:
    """Return the prepared corpus of the run in `folder`; DataError if ranks differ in it, or nothing is left."""

    def work() -> Prepared:
        make_folder(folder)
        return prepare(
            experiment.data,
            folder / PREPARED,
            vocabulary_size=experiment.model.vocabulary_size,
            source_vocabulary_size=own_source_vocabulary(experiment.model),
            progress=progress,
        )

    prepared = world.in_turns(work, doing="preparing the corpus")
    if not len(prepared.train):
        raise DataError("Nothing is left to train on after cleaning and holding out. Look at data/dropped.tsv.")
    own = prepared.report.model_dump_json(include={"splits", "vocabulary_size", "tokenizer_sha256"})
    differing = [str(rank) for rank, found in enumerate(world.gather_texts(own)) if found != own]
    if differing:
        raise DataError(
            f"Rank {world.rank} prepared another corpus in {folder / PREPARED} than ranks {', '.join(differing)}. Give "
            "every machine the same text, or let them share one disk."
        )
    return prepared
