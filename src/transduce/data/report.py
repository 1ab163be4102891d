"""The figures of a preparation, for the model's card, the report page and the terminal."""

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from transduce.data.batching import BatchPlan
from transduce.data.cleaning import Dropped
from transduce.data.corpus_text import ReadCorpus
from transduce.data.sentence_hashes import Hashes, are_known
from transduce.data.token_store import TokenStore

BUDGETS = (4096, 25_000)
"""The tokens per step for which padding is reported: the authors' batch per device, and the paper's step."""


class FileReport(BaseModel, frozen=True):
    """A file that was read."""

    name: str
    bytes: int
    sha256: str


class CorpusReport(BaseModel, frozen=True):
    """One entry of `data.train`, `data.valid` or `data.test`."""

    name: str
    pairs: int
    files: tuple[FileReport, ...]

    @classmethod
    def of(cls, corpus: ReadCorpus) -> "CorpusReport":
        """Return the report on a corpus, without absolute paths and times."""
        names = [name.strip() for name in corpus.name.split(",")] if len(corpus.files) == 2 else [corpus.name]
        named = zip(names, corpus.files, strict=False)
        files = tuple(FileReport(name=name, bytes=file.bytes, sha256=file.sha256) for name, file in named)
        return cls(name=corpus.name, pairs=corpus.pairs, files=files)


class LengthReport(BaseModel, frozen=True):
    """The lengths of the sentences of one side, in tokens with the end token."""

    total: int
    mean: float
    median: int
    percentile_95: int
    longest: int

    @classmethod
    def of(cls, lengths: NDArray[np.int64]) -> "LengthReport":
        """Return the figures of some lengths."""
        ordered = np.sort(lengths)
        return cls(
            total=int(ordered.sum()),
            mean=round(float(ordered.mean()), 2),
            median=int(ordered[len(ordered) // 2]),
            percentile_95=int(ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)]),
            longest=int(ordered[-1]),
        )


class SplitReport(BaseModel, frozen=True):
    """The figures of the training, validation or test text."""

    pairs: int
    is_held_out: bool
    source: LengthReport
    target: LengthReport
    dropped: dict[str, int]
    """The number of dropped pairs by reason; for held-out text, those dropped after it was held out."""
    beyond_maximum: int
    """The number of pairs that are longer than `data.max_length` and were kept."""
    seen_in_training: int
    """The number of pairs whose source is in the training text too, up to case, spaces and punctuation."""

    @classmethod
    def of(
        cls, store: TokenStore, dropped: Dropped, *, is_held_out: bool, max_length: int, training: Hashes | None
    ) -> "SplitReport":
        """Return the figures of a store; `training` has the training text's hashes, None if the store is that text."""
        longer = np.maximum(store.source_lengths, store.target_lengths)
        return cls(
            pairs=len(store),
            is_held_out=is_held_out,
            source=LengthReport.of(store.source_lengths),
            target=LengthReport.of(store.target_lengths),
            dropped=dict(sorted(dropped.counts.items())),
            beyond_maximum=int((longer > max_length).sum()),
            seen_in_training=0 if training is None else int(are_known(store.folded_hashes, training).sum()),
        )

    def reversed(self) -> Self:
        """Return the figures of the same pairs from target to source; `seen_in_training` is unknown and set to 0."""
        return self.model_copy(update={"source": self.target, "target": self.source, "seen_in_training": 0})


class PreparationReport(BaseModel, frozen=True):
    """The figures of a whole preparation."""

    source_language: str | None
    target_language: str | None
    corpora: dict[str, tuple[CorpusReport, ...]]
    splits: dict[str, SplitReport]
    vocabulary_size: int
    source_vocabulary_size: int | None = None
    """Set if the sources have their own vocabulary; `vocabulary_size` is then that of the targets."""
    tokenizer_sha256: str
    """The fingerprint of the tokenizers."""
    tokenizer_was_learned: bool
    padding: dict[int, float]
    """Share of padding in the batches of an epoch, from 0 to 1, by tokens per step."""

    @property
    def vocabulary_in_words(self) -> str:
        """The number of ids, of source and target if each has its own vocabulary."""
        target = f"{self.vocabulary_size:,}"
        return target if self.source_vocabulary_size is None else f"{self.source_vocabulary_size:,} and {target}"

    def dropped_rows(self) -> list[tuple[str, str, int]]:
        """Return the table of dropped pairs: split, reason, number."""
        return [
            (split, reason, count) for split, report in self.splits.items() for reason, count in report.dropped.items()
        ]

    def reversed(self) -> Self:
        """Return the report of the same corpus from target to source."""
        sizes = (self.vocabulary_size, self.source_vocabulary_size)
        return self.model_copy(
            update={
                "vocabulary_size": sizes[1] or sizes[0],
                "source_vocabulary_size": None if sizes[1] is None else sizes[0],
                "source_language": self.target_language,
                "target_language": self.source_language,
                "splits": {split: report.reversed() for split, report in self.splits.items()},
            }
        )


def padding_of(store: TokenStore) -> Mapping[int, float]:
    """Return the share of padding in an epoch for each of `BUDGETS`."""
    shares = {}
    for budget in BUDGETS:
        plan = BatchPlan(store.source_lengths, store.target_lengths, tokens_per_step=budget, seed=0)
        shares[budget] = round(plan.padding(plan.epoch(0)).share, 4)
    return shares
