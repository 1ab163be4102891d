"""Minimum risk training as the last part of a run (`training/risk.py`; not in the paper).

    RUN/risk/1a2b3c4d5e6f/before       the model that likelihood has made
    RUN/risk/1a2b3c4d5e6f/written      what it writes for the training text, a file for every thousand sentences
    RUN/risk/1a2b3c4d5e6f/candidates   the same as token ids, each with its reward
    RUN/risk/1a2b3c4d5e6f/…            checkpoints, metrics and model of this part, which is a run like any other

The folder is named by what the part begins with and by its settings: where either has changed, another part begins.

The candidates of a sentence are the outputs that a beam ends with. Each is rewarded by what it shares with the
reference: sacrebleu's BLEU of the sentence, lower-cased, with 1 added to what runs of two and more words share and have
(Lin and Och 2004), so that one wrong word leaves something to tell the others apart by.

Killed at any moment and started again, it goes on with the first part that is missing, and ends with the same bytes.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from torch import Tensor

from transduce.data.candidates import CandidateStore, candidate_store_written
from transduce.data.encoding import segmentable
from transduce.data.preparation import Prepared
from transduce.decoding.config import DecodingConfig
from transduce.errors import DataError
from transduce.experiment import ExperimentConfig
from transduce.files import make_folder, sweep
from transduce.pipeline.corpus_figures import corpus_fingerprint
from transduce.pipeline.writing import Outputs, Writing
from transduce.progress import Progress
from transduce.text.tokenizer import EOS
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.randomness import mixed_seed

RISK, BEFORE = "risk", "before"
_CANDIDATES, _WRITTEN = "candidates", "written"
_LENGTH_PENALTY = 1.2  # candidates as long as references, not as short as what is most probable
_WITHOUT_SPACES = ("ja", "ko", "th", "zh")
_LARGEST_SEED = 2**31
_CHECKPOINTS, _AVERAGED, _VALIDATIONS, _WARMUP = 20, 4, 4, 0.05


@dataclass(frozen=True)
class Beginning:
    """What the last part of a run begins with."""

    model: Path
    """A model directory; rank 0 has it."""
    weights: Mapping[str, Tensor]
    """The same weights, on every rank."""


def last_part(experiment: ExperimentConfig) -> ExperimentConfig:
    """Return the experiment of the last part: this one with its own steps, rate, intervals and average.

    Intervals decide which checkpoints become its model, so they are not left to what may change between two starts.
    """
    training = experiment.training
    steps = training.risk_steps
    assert steps is not None, "this experiment has no such part"
    changes = {
        **dict.fromkeys(("risk_steps", "teacher_steps", "start_from", "steps", "epochs", "time", "patience")),
        **dict.fromkeys(("r_drop", "bpe_dropout"), 0.0),
        "schedule": "cosine",
        "scale": 1.0,
        "peak": training.risk_peak,
        "warmup_steps": int(_WARMUP * steps),
        "decay_steps": steps,
        "seed": mixed_seed("risk", training.seed) % _LARGEST_SEED,
        "checkpoint_every": max(1, steps // _CHECKPOINTS),
        "keep_checkpoints": _AVERAGED,
        "average_last": _AVERAGED,
        "validate_every": max(1, steps // _VALIDATIONS),
        "best_by": "bleu",  # the loss of references is not what this part lowers
        "shortlist": 0,
    }
    own = TrainingConfig.model_validate({**training.model_dump(), **changes})
    decoding = experiment.decoding.model_copy(update={"shortlist": False})
    return experiment.model_copy(update={"training": own, "decoding": decoding})


def part_name(weights: Mapping[str, Tensor], part: ExperimentConfig) -> str:
    """Return the name of the last part that begins with these weights."""
    settings = {**part.training.trajectory(), "risk_candidates": part.training.risk_candidates}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(weights):
        digest.update(weights[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Judging:
    """The candidates of a run's training text, and what each is worth."""

    prepared: Prepared
    folder: Path
    """That of the last part."""
    model: Path
    candidates: int
    """How many a sentence has at most."""
    language: str | None
    """The target language."""
    stop_requested: Callable[[], bool]
    threads: int
    world: World
    progress: Progress

    @property
    def search(self) -> DecodingConfig:
        """How candidates are found."""
        return DecodingConfig(beam=self.candidates, alternatives=self.candidates, length_penalty=_LENGTH_PENALTY)

    def judged(self) -> CandidateStore | None:
        """Return the candidates, found unless they stand there already; nothing if it was asked to stop."""
        if self.world.is_main:
            make_folder(self.folder)
            sweep(self.folder)
        writing = Writing(
            self.model,
            self.folder / _WRITTEN,
            search=self.search,
            writer="the model",
            stop_requested=self.stop_requested,
            threads=self.threads,
            world=self.world,
            progress=self.progress,
        )
        model = self.world.broadcast_text(writing.fingerprint if self.world.is_main else "")
        parts = [corpus_fingerprint(self.prepared.report), self.search.model_dump(mode="json"), self.language, model]
        origin = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        built = self._built(origin)
        if self.world.any(built is None):
            outputs = writing.outputs(self.prepared.train)
            if outputs is None:
                return None
            built = self.world.in_turns(lambda: self._build(outputs, origin), doing="judging candidates")
        assert built is not None, "where one rank has none, all build it"
        self._refuse_other_candidates(built)
        return built

    def _built(self, origin: str, *, digest: str | None = None) -> CandidateStore | None:
        """Return the candidates that stand there, if they are this run's and, where given, of this digest."""
        try:
            store = CandidateStore(self.folder / _CANDIDATES)
        except DataError:
            return None
        is_ours = store.notes.get("origin") == origin and digest in (None, store.notes.get("written"))
        return store if is_ours and len(store) == len(self.prepared.train) else None

    def _build(self, outputs: Sequence[Outputs], origin: str) -> CandidateStore:
        digest = hashlib.sha256(json.dumps(outputs).encode()).hexdigest()
        built = self._built(origin, digest=digest)
        if built is not None:  # another rank's, on the same disk
            return built
        store, tokenizer, judge = self.prepared.train, self.prepared.tokenizer, Judge(self.language)
        longest = int(max(store.source_lengths.max(), store.target_lengths.max()))
        with (
            self.progress.stage("judging candidates", total=len(store), unit="sentences") as stage,
            candidate_store_written(self.folder / _CANDIDATES) as writer,
        ):
            for number, own in enumerate(outputs):
                source, reference = store.text(number)
                pairs = [segmentable(source, text) for text in own]
                # An output may have what the reference lacks; as a symbol it would need another source beside it.
                texts = list(dict.fromkeys(text for its_source, text in pairs if its_source == source))
                ids = {text: [*pieces, EOS] for text, pieces in zip(texts, tokenizer.encode_all(texts), strict=True)}
                kept = [text for text in texts if text and len(ids[text]) <= longest]
                writer.append([ids[text] for text in kept], judge.rewards(kept, reference=reference))
                stage.advance()
            writer.notes.update(origin=origin, written=digest)
        return CandidateStore(self.folder / _CANDIDATES)

    def _refuse_other_candidates(self, store: CandidateStore) -> None:
        own = str(store.notes["written"])
        if any(found != own for found in self.world.gather_texts(own)):
            raise DataError(
                f"{self.folder / _CANDIDATES} differs between the machines of this run. Delete it on all of them and "
                "start again: it is built anew from what the model wrote."
            )


@dataclass(frozen=True)
class Judge:
    """Tells what an output is worth beside a reference."""

    language: str | None
    """The target language, which decides what counts as a word."""

    @cached_property
    def _bleu(self) -> BLEU:
        language = (self.language or "").lower().partition("-")[0]
        return BLEU(
            lowercase=True,
            tokenize="char" if language in _WITHOUT_SPACES else "13a",
            smooth_method="add-k",
            smooth_value=1,
            effective_order=True,
        )

    def rewards(self, texts: Sequence[str], *, reference: str) -> list[float]:
        """Return what each text is worth, from 0 to 1."""
        return [min(1.0, self._bleu.sentence_score(text, [reference]).score / 100.0) for text in texts]
