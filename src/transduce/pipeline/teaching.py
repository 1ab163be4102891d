"""Data diversification (Nguyen et al. 2020; not in the paper): two teachers translate the corpus to make more pairs.

    RUN/teachers/forward, backward   the training of each teacher: checkpoints, metrics, model
    RUN/teachers/forward/written     the translations of each, one file for every thousand sentences
    RUN/teachers/corpus              the token store with the original and the new pairs

A pair (x, y) becomes three: itself, x with the forward teacher's y, and the backward teacher's x with y. The teachers
have the architecture and tokenizer of the network to be trained, and other seeds. Every part is a stage (`stages.py`).
Building the corpus needs memory for the translations, but not for the corpus.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from transduce.architectures import own_source_vocabulary, stated, with_vocabularies
from transduce.data.encoding import segmentable
from transduce.data.portions import in_portions
from transduce.data.preparation import Prepared
from transduce.data.token_store import TokenStore, TokenStoreWriter, token_store_written
from transduce.decoding.config import DecodingConfig
from transduce.errors import DataError
from transduce.experiment import ExperimentConfig
from transduce.files import MANIFEST, sha256_of_file
from transduce.pipeline.averaging import AveragingStage
from transduce.pipeline.corpus_figures import corpus_fingerprint
from transduce.pipeline.preparing import Preparation
from transduce.pipeline.stages import RunStage, StageContext, StopRequested
from transduce.pipeline.training_stage import TrainingStage
from transduce.pipeline.translating import TranslationStage
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.training.config import TrainingConfig
from transduce.training.randomness import mixed_seed

Direction = Literal["forward", "backward"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward")

DIVERSIFIED = 1 + len(DIRECTIONS)
"""The number of pairs that each pair becomes, if both teachers' translations are used."""

TEACHERS = "teachers"
_LARGEST_SEED = 2**31
# A higher length penalty than the paper's, so that a teacher's translations are not shorter than people's.
_SEARCH = DecodingConfig(beam=5, length_penalty=1.5, keep_placeholders="report", keep_form=False)
_CHECKPOINTS, _AVERAGED, _VALIDATIONS = 20, 4, 4


def teacher(experiment: ExperimentConfig, direction: Direction) -> ExperimentConfig:
    """Return the experiment of a teacher: this one with another seed, and with its own steps, intervals and average.

    Intervals decide which checkpoints become its model, so they do not follow settings that may change between starts.
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


def teaching_stages(
    experiment: ExperimentConfig, prepared: Prepared, run: Path, *, threads: int, preparation: Preparation
) -> tuple[list[RunStage], "TeachersCorpus"]:
    """Return the stages that train the teachers and translate with them, and the stage that builds their corpus."""
    context = preparation.context
    stages: list[RunStage] = []
    translations: dict[Direction, TranslationStage] = {}
    for direction in DIRECTIONS:
        folder, corpus = run / TEACHERS / direction, prepared if direction == "forward" else prepared.reversed()
        training = TrainingStage(
            name=f"training the {direction} teacher",
            experiment=teacher(experiment, direction),
            folder=folder,
            prepared=corpus,
            needs=(preparation,),
            context=context,
        )
        averaging = AveragingStage(training)
        translations[direction] = TranslationStage(
            name=f"the {direction} teacher translates",
            model=averaging.result,
            store=corpus.train,
            search=_SEARCH,
            folder=folder,
            threads=threads,
            needs=(averaging,),
            context=context,
        )
        stages += [training, averaging, translations[direction]]
    return stages, TeachersCorpus(experiment, prepared, run / TEACHERS, translations, context)


@dataclass(frozen=True, eq=False)
class TeachersCorpus:
    """Builds the corpus of the original pairs and those with the teachers' translations."""

    experiment: ExperimentConfig
    """The experiment of the run, not of a teacher."""
    prepared: Prepared
    folder: Path
    translations: Mapping[Direction, TranslationStage]
    context: StageContext
    name: str = "collecting translations"
    _verified: set[str] = field(default_factory=set)
    """The SHA-256 of the manifests whose stores were compared with them."""

    @property
    def result(self) -> Path:
        """The token store."""
        return self.folder / "corpus"

    @property
    def needs(self) -> Sequence[RunStage]:
        """The translations of both teachers."""
        return [self.translations[direction] for direction in DIRECTIONS]

    def is_done(self) -> bool:
        """Return whether the store exists and was made by these teachers."""
        return self.found() is not None

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Build the store on every machine; this is quick, so it ignores `stop_requested`."""
        texts = {
            direction: [outputs[0] if outputs else "" for outputs in self.translations[direction].outputs()]
            for direction in DIRECTIONS
        }
        self.context.world.in_turns(lambda: self._build(texts), doing=self.name)
        return True

    def store(self) -> TokenStore:
        """Return the store, or raise DataError if it differs between ranks; every rank must call this."""
        store = self._opened()
        own = str(store.notes["written"])
        if any(found != own for found in self.context.world.gather_texts(own)):
            raise DataError(
                f"{self.result} differs between the machines of this run. Delete it on all of them and start again to "
                "build it from the teachers' translations."
            )
        return store

    def _opened(self) -> TokenStore:
        """Open the store, compared with its hashes once for every start."""
        manifest = self.result / MANIFEST
        digest = sha256_of_file(manifest) if manifest.is_file() else ""
        store = TokenStore(self.result) if digest in self._verified else TokenStore.open(self.result)
        self._verified.add(digest)
        return store

    def found(self, *, digest: str | None = None) -> TokenStore | None:
        """Return the store if it exists and was made by these teachers and, if given, from these translations."""
        try:
            store = self._opened()
        except DataError:
            return None
        is_ours = store.notes.get("origin") == self._origin and digest in (None, store.notes.get("written"))
        return store if is_ours else None

    def identity(self, store: TokenStore) -> dict[str, JsonValue]:
        """Return the hash of the teachers' translations, which affects the weights, by dotted key."""
        return {"data.written_by_teachers": store.notes["written"]}

    def figures(self, store: TokenStore) -> dict[str, Any]:
        """Return the figures of the store for a card."""
        return {"train pairs with the teachers' translations": len(store)}

    @cached_property
    def _origin(self) -> str:
        """A hash of all that affects the store: the corpus and the teachers' experiments."""
        teachers = [teacher(self.experiment, direction) for direction in DIRECTIONS]
        settings = [[stated(one.model), one.training.trajectory()] for one in teachers]
        steps = self.experiment.training.teacher_steps  # a trajectory has it only with schedule "cosine"
        parts = [corpus_fingerprint(self.prepared.report), _SEARCH.model_dump(mode="json"), steps, *settings]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _build(self, texts: Mapping[Direction, Sequence[str]]) -> None:
        digest = hashlib.sha256(json.dumps([texts[direction] for direction in DIRECTIONS]).encode()).hexdigest()
        if self.found(digest=digest) is not None:  # another rank with the same disk has built it
            return
        tokenizers, store = self.prepared.tokenizers, self.prepared.train
        longest = int(max(store.source_lengths.max(), store.target_lengths.max()))
        written_store = token_store_written(
            self.result,
            vocabulary_size=tokenizers.vocabulary_size,
            source_vocabulary_size=tokenizers.source_vocabulary_size,
        )
        with written_store as writer:
            for some in in_portions(self._pairs(texts), lambda pair: len(pair[0]) + len(pair[1])):
                _append(some, writer, tokenizers, longest=longest)
            writer.notes.update(origin=self._origin, written=digest)

    def _pairs(self, texts: Mapping[Direction, Sequence[str]]) -> Iterator[tuple[str, str]]:
        store, protect_pair = self.prepared.train, self.prepared.tokenizers.protect_pair
        for number in range(len(store)):
            yield store.text(number)
        for number, text in enumerate(texts["forward"]):
            if text:
                yield segmentable(protect_pair(store.text(number)[0], text))
        for number, text in enumerate(texts["backward"]):
            if text:
                yield segmentable(protect_pair(text, store.text(number)[1]))


def _append(
    pairs: Sequence[tuple[str, str]], writer: TokenStoreWriter, tokenizers: TokenizerPair, *, longest: int
) -> None:
    """Add pairs, without those in which a teacher's translation is longer than any sentence of the corpus."""
    sources = tokenizers.encode_sources([source for source, _ in pairs])
    targets = tokenizers.encode_targets([target for _, target in pairs])
    kept = [n for n in range(len(pairs)) if max(len(sources[n]), len(targets[n])) <= longest]
    writer.append([sources[n] for n in kept], [targets[n] for n in kept], texts=[pairs[n] for n in kept])
