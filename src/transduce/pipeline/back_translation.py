"""Back-translation: text in the target language, with sources that a reverse model writes (Sennrich et al. 2016).

RUN/divided/     the real pairs, divided once for all trainings, and turned for the reverse model
RUN/reverse/     the run of the reverse model, unless one is given
RUN/written/, pairs/    its translations of the text, and the pairs (`made_pairs.py`)
RUN/without/     a run on the real pairs alone, to compare with
RUN/mixed/       a run on real and written pairs; a tag marks written sources (Caswell et al. 2019)
RUN/             a run that begins with mixed/ and ends on real pairs alone
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from transduce.bulk.parts import LargeText
from transduce.data.config import DataConfig
from transduce.data.formats import Corpus, Selection
from transduce.data.held_out import SplitPart, held_out_sizes, hold_out
from transduce.data.sentence_hashes import Hashes, hashes_after_folding
from transduce.decoding.config import DecodingOptions
from transduce.errors import DataError
from transduce.experiment import merged
from transduce.files import directory_written_atomically, manifest_fault
from transduce.pipeline.made_pairs import PART_LINES, PairsStage, PartsStage, WritingModel
from transduce.pipeline.planning import TrainRequest
from transduce.pipeline.stages import RunStage, StageContext, StopRequested
from transduce.pipeline.whole_run import WholeRun

TAG = ">>bt<<"
_SPLITS = ("train", "valid", "test")
TextPair = tuple[str, str]


@dataclass(frozen=True)
class BackTranslation:
    """What to learn from."""

    text: tuple[Path, ...]
    """The text in the target language."""
    corpora: Mapping[str, Sequence[str]]
    """The real pairs: names of corpora for train, and perhaps for valid and test."""
    real: TrainRequest
    """The preset and settings of all trainings but the last."""
    languages: tuple[str | None, str | None] = (None, None)
    reverse_model: str | None = None
    search: DecodingOptions | None = None
    weight: float | Literal["equal"] = "equal"
    tag: str = TAG
    threads: int | None = None


@dataclass(frozen=True, eq=False)
class DividedPairs:
    """Divides the real pairs into splits, once for all trainings, and writes each also from target to source."""

    folder: Path
    corpora: Mapping[str, Sequence[str]]
    selection: Selection
    context: StageContext
    needs: Sequence[RunStage] = ()
    name: str = "dividing the real pairs"

    @property
    def result(self) -> Path:
        """train.tsv, valid.tsv, test.tsv, and each of them with turned- before its name."""
        return self.folder

    def is_done(self) -> bool:
        """Return whether the files are whole and of these corpora."""
        try:
            return manifest_fault(self.folder) is None and self._of() == (self.folder / "of.json").read_text("utf-8")
        except OSError:
            return False

    def run(self, *, stop_requested: StopRequested) -> bool:
        """Read, divide and write the pairs; this is quick, so it ignores `stop_requested`."""
        splits = {split: list(self._read(split)) for split in _SPLITS}
        sources, targets = (hashes_after_folding(pair[side] for pair in splits["train"]) for side in range(2))
        given = DataConfig(**{split: self.corpora.get(split, ()) for split in _SPLITS})
        valid, test = held_out_sizes(given, len(sources))
        parts = hold_out(sources, targets, valid=valid, test=test, seed=given.held_out_seed)
        for split, part in (("valid", SplitPart.VALID), ("test", SplitPart.TEST), ("train", SplitPart.TRAIN)):
            chosen = [pair for pair, own in zip(splits["train"], parts.tolist(), strict=True) if own == part]
            splits[split] = chosen if split == "train" or not splits[split] else splits[split]
        if not all(splits.values()):
            raise DataError("Too few pairs to hold some out for validation and test. Give more, or --valid and --test.")
        with directory_written_atomically(self.folder) as beside:
            for split, pairs in splits.items():
                for name, side in (("", 1), ("turned-", -1)):
                    content = "".join("\t".join(pair[::side]) + "\n" for pair in pairs)
                    (beside / f"{name}{split}.tsv").write_bytes(content.encode())
            (beside / "of.json").write_text(self._of(), encoding="utf-8")
            (beside / "README.md").write_text("The real pairs; turned-: target first.\n", encoding="utf-8")
        return True

    def file(self, split: str, *, turned: bool = False) -> str:
        """Return the name of a file of pairs."""
        return str(self.folder / f"{'turned-' if turned else ''}{split}.tsv")

    def held_out_targets(self) -> Hashes:
        """Return sorted hashes of the targets that are held out."""
        pairs = (pair for split in ("valid", "test") for pair in Corpus(self.file(split)).pairs())
        return np.unique(hashes_after_folding(pair.target for pair in pairs))

    def _read(self, split: str) -> Iterable[TextPair]:
        for name in self.corpora.get(split, ()):
            for pair in Corpus(name, self.selection).pairs():
                if not pair.skipped and pair.source.strip() and pair.target.strip():
                    yield " ".join(pair.source.split()), " ".join(pair.target.split())

    def _of(self) -> str:
        files = [file.path for names in self.corpora.values() for name in names for file in Corpus(name).files]
        return json.dumps([[str(path), path.stat().st_size] for path in files])


def back_translation_stages(asked: BackTranslation, folder: Path, context: StageContext) -> list[RunStage]:
    """Return the stages from the two texts to the model."""
    source, target = asked.languages
    divided = DividedPairs(folder / "divided", asked.corpora, Selection(source, target), context)
    text, stages = LargeText(asked.text, PART_LINES), list[RunStage]([divided])

    def run(name: str, place: Path, data: dict[str, Any], *needs: RunStage, turned: bool = False) -> WholeRun:
        own = {split: [divided.file(split, turned=turned)] for split in _SPLITS}
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
    pairs = PairsStage(folder / "pairs", text, written, context, text_is_target=True, held_out=divided.held_out_targets)
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
    request = TrainRequest(sections=sections)
    return WholeRun("ending on real pairs", folder, request, (mixed, without), mixed.context)
