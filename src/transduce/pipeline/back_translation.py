"""Back-translation: text in the target language, with sources that a reverse model writes (Sennrich et al. 2016).

RUN/divided/     the real pairs, divided once for all trainings, and turned for the reverse model
RUN/reverse/     the run of the reverse model, unless one is given
RUN/written/, pairs/    its translations of the text, and the pairs (`made_pairs.py`)
RUN/without/     a run on the real pairs alone, to compare with
RUN/mixed/       a run on real and written pairs; a tag marks written sources (Caswell et al. 2019)
RUN/             a run that begins with mixed/ and ends on real pairs alone
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transduce.bulk.parts import LargeText
from transduce.data.formats import Selection
from transduce.decoding.config import DecodingOptions
from transduce.experiment import merged
from transduce.pipeline.divided_pairs import SPLITS, DividedPairs
from transduce.pipeline.made_pairs import PART_LINES, PairsStage, PartsStage, WritingModel
from transduce.pipeline.planning import TrainRequest
from transduce.pipeline.stages import RunStage, StageContext
from transduce.pipeline.whole_run import WholeRun

TAG = ">>bt<<"
_BUDGETS = ("steps", "epochs", "time", "patience", "validate_every", "checkpoint_every", "seed", "precision")
_ALSO_AT_THE_END = frozenset(f"training.{key}" for key in _BUDGETS)
"""The settings that the last training takes over from the others; its schedule is that of fine-tuning."""


@dataclass(frozen=True)
class BackTranslation:
    """What to learn from."""

    text: tuple[Path, ...]
    """The text in the target language."""
    corpora: Mapping[str, Sequence[str]]
    """The real pairs: names of corpora for train, and perhaps for valid and test."""
    real: TrainRequest
    """The preset and settings of all trainings; of them the last takes budgets and the seed alone."""
    languages: tuple[str | None, str | None] = (None, None)
    reverse_model: str | None = None
    search: DecodingOptions | None = None
    weight: float | Literal["equal"] = "equal"
    tag: str = TAG
    threads: int | None = None


def back_translation_stages(asked: BackTranslation, folder: Path, context: StageContext) -> list[RunStage]:
    """Return the stages from the two texts to the model."""
    source, target = asked.languages
    divided = DividedPairs(folder / "divided", asked.corpora, Selection(source, target), context)
    text, stages = LargeText(asked.text, PART_LINES), list[RunStage]([divided])

    def run(name: str, place: Path, data: dict[str, Any], *needs: RunStage, turned: bool = False) -> WholeRun:
        own = {split: [divided.file(split, turned=turned)] for split in SPLITS}
        first, second = (target, source) if turned else (source, target)
        languages = {"source_language": first, "target_language": second}
        named = {key: value for key, value in languages.items() if value is not None}
        sections = merged({"data": {**own, **named, **data}}, asked.real.sections or {})
        request = TrainRequest(preset=asked.real.preset, overrides=asked.real.overrides, sections=sections)
        return WholeRun(name, place, request, (divided, *needs), context)

    reverse_model, before = asked.reverse_model, list[RunStage]()
    if reverse_model is None:
        before = [run("training the reverse model", folder / "reverse", {}, turned=True)]
        reverse_model = str(folder / "reverse")
    writer = WritingModel((reverse_model,), asked.search or {}, asked.threads)
    written = PartsStage("the reverse model translates", folder / "written", writer, text, before, context)
    pairs = PairsStage(folder / "pairs", text, written, context, text_is_target=True, held_out=divided)
    corpus = {"files": [str(pairs.result)], "weight": asked.weight, "tag": asked.tag, "synthetic": True}
    without = run("training without the text, to compare", folder / "without", {})
    mixed = run("training on both", folder / "mixed", {"corpora": [corpus]}, pairs)
    return [*stages, *before, written, pairs, without, mixed, _ending_on_real_pairs(mixed, without, folder)]


def _ending_on_real_pairs(mixed: WholeRun, without: WholeRun, folder: Path) -> WholeRun:
    """Return the run that starts from `mixed`, with the settings for adapting a model, on the pairs of `without`."""
    sections = {
        "data": (without.request.sections or {})["data"],
        "training": {**((without.request.sections or {}).get("training", {})), "start_from": str(mixed.folder)},
    }
    own = [given for given in without.request.overrides if given.partition("=")[0].strip() in _ALSO_AT_THE_END]
    request = TrainRequest(overrides=own, sections=sections)
    return WholeRun("ending on real pairs", folder, request, (mixed, without), mixed.context)
