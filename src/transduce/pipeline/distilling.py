"""Distillation: a small student learns what a teacher makes of text in one language (Kim and Rush 2016).

    RUN/divided/                      real pairs, divided into training, validation and test text
    RUN/written/, scores/, pairs/     the teacher's translations, their scores, and the pairs (`made_pairs.py`)
    RUN/                              the student's own run, ready to translate and to serve

The list of stages: the teacher translates, a reverse model scores, pairs are collected, the student is trained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from transduce.bulk.parts import LargeText
from transduce.data.formats import Selection
from transduce.decoding.config import DecodingOptions
from transduce.experiment import merged
from transduce.pipeline.divided_pairs import SPLITS, DividedPairs
from transduce.pipeline.made_pairs import PART_LINES, PairsStage, PartsStage, ScoringModel, WritingModel
from transduce.pipeline.planning import TrainRequest
from transduce.pipeline.stages import RunStage, StageContext
from transduce.pipeline.whole_run import WholeRun

Decoder = Literal["full", "shallow", "ssru"]
_DECODERS: Mapping[Decoder, Mapping[str, object]] = {
    "full": {},
    "shallow": {"decoder_layers": 1},
    "ssru": {"decoder_layers": 2, "decoder_mixer": "ssru"},
}
_SHORTLIST = 50


@dataclass(frozen=True)
class Distillation:
    """What to distil into what."""

    text: tuple[Path, ...]
    """The text in the source language."""
    real: TrainRequest
    """The settings of the student's training."""
    corpora: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Real pairs to learn from as well: names of corpora for train, and perhaps for valid and test."""
    languages: tuple[str | None, str | None] = (None, None)
    teachers: tuple[str, ...] = ()
    teacher_output: tuple[Path, ...] = ()
    """The translations of the text, line by line, from any system, in place of `teachers`."""
    reverse_model: str | None = None
    worst: float = 0.1
    student: Literal["small", "tiny"] = "small"
    decoder: Decoder = "ssru"
    beam: int | None = None
    threads: int | None = None


def distillation_stages(asked: Distillation, folder: Path, context: StageContext) -> list[RunStage]:
    """Return the stages from the text to the student."""
    text, stages = LargeText(asked.text, PART_LINES), list[RunStage]()
    written: PartsStage | LargeText = LargeText(asked.teacher_output)
    if not asked.teacher_output:
        search: DecodingOptions = {} if asked.beam is None else {"beam": asked.beam}
        teacher = WritingModel(asked.teachers, search, asked.threads)
        written = PartsStage("the teacher translates", folder / "written", teacher, text, (), context)
        stages.append(written)
    scores: PartsStage | None = None
    if asked.reverse_model is not None:
        scorer = ScoringModel(asked.reverse_model, asked.threads)
        scores = PartsStage(
            "the reverse model scores pairs", folder / "scores", scorer, text, tuple(stages), context, written
        )
        stages.append(scores)
    worst = asked.worst if scores else 0.0
    if not asked.corpora.get("train"):
        pairs = PairsStage(folder / "pairs", text, written, context, scores=scores, worst=worst)
        data: dict[str, Any] = {**asked.corpora, "train": [str(pairs.result)]}
        return [*stages, pairs, WholeRun("training the student", folder, _student(asked, data), (pairs,), context)]
    divided = DividedPairs(folder / "divided", asked.corpora, Selection(*asked.languages), context)
    pairs = PairsStage(folder / "pairs", text, written, context, scores=scores, worst=worst, held_out=divided)
    data = {split: [divided.file(split)] for split in SPLITS} | {"corpora": [{"files": [str(pairs.result)]}]}
    student = WholeRun("training the student", folder, _student(asked, data), (divided, pairs), context)
    return [*stages, divided, pairs, student]


def _student(asked: Distillation, data: dict[str, Any]) -> TrainRequest:
    source, target = asked.languages
    languages = {"source_language": source, "target_language": target}
    sections = {
        "model": dict(_DECODERS[asked.decoder]),
        "data": {**data, **{key: value for key, value in languages.items() if value is not None}},
        "training": {"shortlist": _SHORTLIST},
        "decoding": {"shortlist": True},
    }
    sections = merged(sections, asked.real.sections or {})
    return TrainRequest(preset=asked.student, overrides=asked.real.overrides, sections=sections)
