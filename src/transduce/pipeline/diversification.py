"""Data diversification (Nguyen et al. 2020; not in the paper): more pairs from the same corpus, by two teachers.

    RUN/teachers/forward, backward   their checkpoints, metrics and models, in either direction
    RUN/teachers/forward/written     what each wrote, a file for every thousand sentences
    RUN/teachers/corpus              the token store to learn from

A pair (x, y) becomes three: itself, x with the forward teacher's y, and the backward teacher's x with y. The teachers
are networks like the one to be trained, from other seeds, with the same tokenizer.

Killed at any moment and started again, it goes on with the first part that is missing, and ends with the same bytes.
Nothing that may change between two starts has a part in what they write. Translations, but not the corpus, are held in
memory.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from transduce.architectures import own_source_vocabulary, with_vocabularies
from transduce.data.encoding import segmentable
from transduce.data.portions import in_portions
from transduce.data.preparation import Prepared
from transduce.data.token_store import TokenStore, TokenStoreWriter, token_store_written
from transduce.decoding.config import DecodingConfig
from transduce.errors import DataError
from transduce.experiment import ExperimentConfig
from transduce.files import make_folder, sweep
from transduce.pipeline.corpus_figures import corpus_fingerprint
from transduce.pipeline.writing import Writing
from transduce.progress import Progress
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.randomness import mixed_seed

Direction = Literal["forward", "backward"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward")

DIVERSIFIED = 1 + len(DIRECTIONS)
"""How many pairs each one becomes, where both teachers wrote something to learn from."""

TEACHERS = "teachers"
_CORPUS, _WRITTEN = "corpus", "written"
_LARGEST_SEED = 2**31
# A higher penalty than the paper's: what teachers write should not be shorter than what people write.
_SEARCH = DecodingConfig(beam=5, length_penalty=1.5)
_CHECKPOINTS, _AVERAGED, _VALIDATIONS = 20, 4, 4


def teacher(experiment: ExperimentConfig, direction: Direction) -> ExperimentConfig:
    """Return the experiment of a teacher: this one from another seed, with its own steps, intervals and average.

    Intervals decide which checkpoints become its model, so they are not left to what may change between two starts.
    """
    training, data = experiment.training, experiment.data
    steps = training.teacher_steps
    assert steps is not None, "this experiment has no teachers"
    changes = {
        **dict.fromkeys(("teacher_steps", "steps", "epochs", "time", "decay_steps", "patience")),
        "decay_steps" if training.schedule == "cosine" else "steps": steps,
        "seed": mixed_seed(direction, training.seed) % _LARGEST_SEED,
        "checkpoint_every": max(1, steps // _CHECKPOINTS),
        "keep_checkpoints": _AVERAGED,
        "average_last": _AVERAGED,
        "validate_every": max(1, steps // _VALIDATIONS),
        "best_by": "loss",
        "shortlist": 0,
    }
    own = TrainingConfig.model_validate({**training.model_dump(), **changes})
    model = experiment.model
    if direction == "backward":
        languages = {"source_language": data.target_language, "target_language": data.source_language}
        data = data.model_copy(update=languages)
        if (sources := own_source_vocabulary(model)) is not None:
            model = with_vocabularies(model, target=sources, source=model.vocabulary_size)
    decoding = experiment.decoding.model_copy(update={"shortlist": False})
    return experiment.model_copy(update={"training": own, "data": data, "model": model, "decoding": decoding})


@dataclass(frozen=True)
class Diversification:
    """What the teachers of one run make of its corpus."""

    experiment: ExperimentConfig
    prepared: Prepared
    folder: Path
    """That of the teachers."""
    teach: Callable[[Direction, Path, Prepared], Path | None]
    """Trains a teacher in a folder; returns its model, or nothing if it was asked to stop."""
    stop_requested: Callable[[], bool]
    threads: int
    world: World
    progress: Progress

    def corpus(self) -> TokenStore | None:
        """Return the store to learn from, built unless it stands there already; nothing if it was asked to stop."""
        self._clear(self.folder)
        built = self._built()
        if self.world.any(built is None):
            written: dict[Direction, list[str]] = {}
            for direction in DIRECTIONS:
                prepared = self.prepared if direction == "forward" else self.prepared.reversed()
                self._clear(self.folder / direction)
                model = self.teach(direction, self.folder / direction, prepared)
                outputs = None if model is None else self._writing(direction, model).outputs(prepared.train)
                if outputs is None:
                    return None
                written[direction] = [own[0] if own else "" for own in outputs]
            built = self.world.in_turns(lambda: self._build(written), doing="collecting translations")
        assert built is not None, "where one rank has none, all build it"
        self._refuse_other_corpora(built)
        return built

    @cached_property
    def _origin(self) -> str:
        """What the store follows from: the corpus and the teachers' experiments."""
        teachers = [teacher(self.experiment, direction) for direction in DIRECTIONS]
        settings = [[one.model.model_dump(mode="json"), one.training.trajectory()] for one in teachers]
        steps = self.experiment.training.teacher_steps  # of a trajectory it is a part with schedule "cosine" alone
        parts = [corpus_fingerprint(self.prepared.report), _SEARCH.model_dump(mode="json"), steps, *settings]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _built(self, *, digest: str | None = None) -> TokenStore | None:
        """Return the store that stands there, if it is this run's and, where given, of this digest."""
        try:
            store = TokenStore.open(self.folder / _CORPUS)
        except DataError:
            return None
        is_ours = store.notes.get("origin") == self._origin and digest in (None, store.notes.get("written"))
        return store if is_ours else None

    def _writing(self, direction: Direction, model: Path) -> Writing:
        return Writing(
            model,
            model.parent / _WRITTEN,
            search=_SEARCH,
            writer=f"the {direction} teacher",
            stop_requested=self.stop_requested,
            threads=self.threads,
            world=self.world,
            progress=self.progress,
        )

    def _clear(self, folder: Path) -> None:
        if self.world.is_main:
            make_folder(folder)
            sweep(folder)

    def _build(self, written: Mapping[Direction, Sequence[str]]) -> TokenStore:
        digest = hashlib.sha256(json.dumps([written[direction] for direction in DIRECTIONS]).encode()).hexdigest()
        built = self._built(digest=digest)
        if built is not None:  # another rank's, on the same disk
            return built
        tokenizers = self.prepared.tokenizers
        store = self.prepared.train
        longest = int(max(store.source_lengths.max(), store.target_lengths.max()))
        written_store = token_store_written(
            self.folder / _CORPUS,
            vocabulary_size=tokenizers.vocabulary_size,
            source_vocabulary_size=tokenizers.source_vocabulary_size,
        )
        with written_store as writer:
            for some in in_portions(self._pairs(written), lambda pair: len(pair[0]) + len(pair[1])):
                _append(some, writer, tokenizers, longest=longest)
            writer.notes.update(origin=self._origin, written=digest)
        return TokenStore.open(self.folder / _CORPUS)

    def _pairs(self, written: Mapping[Direction, Sequence[str]]) -> Iterator[tuple[str, str]]:
        store, protect_pair = self.prepared.train, self.prepared.tokenizers.protect_pair
        for number in range(len(store)):
            yield store.text(number)
        for number, text in enumerate(written["forward"]):
            if text:
                yield segmentable(protect_pair(store.text(number)[0], text))
        for number, text in enumerate(written["backward"]):
            if text:
                yield segmentable(protect_pair(text, store.text(number)[1]))

    def _refuse_other_corpora(self, store: TokenStore) -> None:
        own = str(store.notes["written"])
        if any(found != own for found in self.world.gather_texts(own)):
            raise DataError(
                f"{self.folder / _CORPUS} differs between the machines of this run. Delete it on all of them and start "
                "again: it is built anew from what the teachers wrote."
            )


def _append(
    pairs: Sequence[tuple[str, str]], writer: TokenStoreWriter, tokenizers: TokenizerPair, *, longest: int
) -> None:
    """Add pairs, but those in which a teacher wrote more than the longest sentence of the corpus."""
    sources = tokenizers.encode_sources([source for source, _ in pairs])
    targets = tokenizers.encode_targets([target for _, target in pairs])
    kept = [n for n in range(len(pairs)) if max(len(sources[n]), len(targets[n])) <= longest]
    writer.append([sources[n] for n in kept], [targets[n] for n in kept], texts=[pairs[n] for n in kept])
