"""The stage that divides real pairs into training, validation and test text, for several trainings with other text.

The held-out pairs are the same for all trainings, and no sentence of theirs may be among the made pairs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transduce.data.config import DataConfig
from transduce.data.formats import Corpus, Selection
from transduce.data.held_out import SplitPart, held_out_sizes, hold_out
from transduce.data.sentence_hashes import Hashes, hashes_after_folding
from transduce.errors import DataError
from transduce.files import directory_written_atomically, manifest_fault
from transduce.pipeline.stages import RunStage, StageContext, StopRequested

SPLITS = ("train", "valid", "test")
TextPair = tuple[str, str]


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
        splits = {split: list(self._read(split)) for split in SPLITS}
        sources, targets = (hashes_after_folding(pair[side] for pair in splits["train"]) for side in range(2))
        given = DataConfig(**{split: self.corpora.get(split, ()) for split in SPLITS})
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

    def held_out(self) -> Hashes:
        """Return sorted hashes of the sentences of both sides that are held out."""
        pairs = [pair for split in ("valid", "test") for pair in Corpus(self.file(split)).pairs()]
        return np.unique(hashes_after_folding(side for pair in pairs for side in (pair.source, pair.target)))

    def _read(self, split: str) -> Iterable[TextPair]:
        for name in self.corpora.get(split, ()):
            for pair in Corpus(name, self.selection).pairs():
                if not pair.skipped and pair.source.strip() and pair.target.strip():
                    yield " ".join(pair.source.split()), " ".join(pair.target.split())

    def _of(self) -> str:
        files = [file.path for names in self.corpora.values() for name in names for file in Corpus(name).files]
        return json.dumps([[str(path), path.stat().st_size] for path in files])
