"""Filtering of a parallel corpus: every pair gets scores, and is dropped if one is above its limit.

The scores of likelihood and length are compared with what is usual in this corpus, because a model is less sure of
debates than of captions. What is usual is the median of a random sample, and the deviation is taken from its better
half (for the length from both), which bad pairs do not touch while they are fewer than half.

With a model of each direction, likelihood is dual cross-entropy (Junczys-Dowmunt 2018):

    |H_f - H_b| + (H_f + H_b) / 2,   H = -log p(target | source) / tokens, in nats

The corpus is read twice, once for the sample and once to filter it, in windows, so that its size does not matter.
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from transduce.data.formats import Corpus, Pair, Selection
from transduce.errors import DataError
from transduce.filtering.config import FilterConfig
from transduce.filtering.duplicates import SeenHashes, pair_hashes
from transduce.filtering.text_scores import (
    copied_share,
    different_numbers,
    different_placeholders,
    log_length_ratio,
    wrong_language,
)
from transduce.progress import Progress, Silent
from transduce.translator.translation import Likelihood

SCORES = ("empty", "duplicates", "copied", "numbers", "placeholders", "length", "likelihood", "ending", "language")
"""The reasons to drop a pair. A pair with several is counted under the first."""
_WINDOW = 2_048
_EXAMPLES = 6
_BINS = 40
_TENTH_OF_NORMAL = 1.2816  # the deviations between a normal distribution's median and its tenth percentile

Scores = NDArray[np.float64]


class LikelihoodModel(Protocol):
    """What filtering needs of a translator."""

    def likelihood(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        """Return the log-probability of each pair's target, given its source."""


@dataclass
class ScoreReport:
    """One score: its limit, histograms of what was kept and dropped, and the pairs next to the limit on both sides."""

    limit: float
    edges: list[float]
    kept_counts: list[int]
    dropped_counts: list[int]
    kept: list[tuple[float, str, str]] = field(default_factory=list)
    dropped: list[tuple[float, str, str]] = field(default_factory=list)


@dataclass
class FilterReport:
    """What was kept and dropped, and each score."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    scores: dict[str, ScoreReport] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """A pair of the corpus, and why it is dropped: a name of `SCORES`, or None."""

    pair: Pair
    dropped: str | None


@dataclass(frozen=True)
class _Usual:
    """The median and the deviation of a score in the corpus."""

    median: float
    deviation: float

    def distance(self, values: Scores) -> Scores:
        """Return the distances from the median, in deviations."""
        return (values - self.median) / self.deviation


class CorpusFilter:
    """Scores and limits for one corpus."""

    def __init__(
        self,
        name: str,
        selection: Selection,
        config: FilterConfig = FilterConfig(),  # noqa: B008 - it is frozen
        *,
        forward: LikelihoodModel | None = None,
        backward: LikelihoodModel | None = None,
        progress: Progress = Silent(),  # noqa: B008 - it has no state
    ) -> None:
        """`forward` and `backward` are models from source to target and back; without them two scores are left out."""
        self.name, self.selection, self.config = name, selection, config
        self.models = [(model, turned) for model, turned in ((forward, False), (backward, True)) if model is not None]
        self.progress = progress
        self.report = FilterReport()

    def verdicts(self) -> Iterator[Verdict]:
        """Yield every pair of the corpus with its verdict, in order; the report is whole after the last one."""
        usual = self._usual()
        seen = SeenHashes()
        with self.progress.stage("filtering", unit="pairs") as stage:
            for window in _windows(self._pairs()):
                scores = self._scores(window, usual)
                if self.config.duplicates is not None:
                    hashes = pair_hashes(_texts(window), near=self.config.duplicates == "near")
                    scores["duplicates"] = seen.add(hashes).astype(np.float64)
                yield from self._judge(window, scores)
                stage.advance(len(window))
                stage.describe(f"{self.report.kept:,} kept")

    def limit(self, score: str) -> float | None:
        """Return the limit of a score; None if it drops nothing."""
        if score in ("empty", "duplicates"):
            return 0.0 if score == "empty" or self.config.duplicates is not None else None
        value = getattr(self.config, score)
        return None if value is None else float(value)

    def _pairs(self) -> Iterator[Pair]:
        return (pair for pair in Corpus(self.name, self.selection).pairs() if not pair.skipped)

    def _usual(self) -> dict[str, _Usual]:
        """Return what is usual in a random sample of the corpus."""
        chance, sample = random.Random(self.config.seed), list[Pair]()
        with self.progress.stage("drawing a sample", unit="pairs") as stage:
            for number, pair in enumerate(self._pairs()):
                if len(sample) < self.config.sample:
                    sample.append(pair)
                elif (place := chance.randrange(number + 1)) < self.config.sample:
                    sample[place] = pair
                stage.advance()
        texts = [text for text in _texts(sample) if all(text)]
        if not texts:
            raise DataError(f"{self.name} has no pair with text on both sides.")
        ratios = np.array([log_length_ratio(*text) for text in texts])
        spread = float(np.median(np.abs(ratios - np.median(ratios)))) * 1.4826
        usual = {"length": _Usual(float(np.median(ratios)), max(spread, 0.05))}
        if self.models:
            entropies, _ = self._likelihoods(texts)
            median, low = np.quantile(entropies, [0.5, 0.1])
            usual["likelihood"] = _Usual(float(median), max(float(median - low) / _TENTH_OF_NORMAL, 0.05))
        return usual

    def _scores(self, window: Sequence[Pair], usual: Mapping[str, _Usual]) -> dict[str, Scores]:
        texts = _texts(window)
        languages = (self.selection.source_language, self.selection.target_language)
        of_text: dict[str, Callable[[str, str], float]] = {
            "empty": lambda source, target: float(not (source and target)),
            "copied": copied_share,
            "numbers": different_numbers,
            "placeholders": different_placeholders,
            "length": log_length_ratio,
        }
        if self.config.language is not None:
            of_text["language"] = lambda source, target: wrong_language(source, target, languages)
        scores = {name: np.array([score(*text) for text in texts]) for name, score in of_text.items()}
        scores["length"] = np.abs(usual["length"].distance(scores["length"]))
        if self.models:
            entropies, endings = self._likelihoods(texts)
            scores |= {"likelihood": usual["likelihood"].distance(entropies), "ending": endings}
        return scores

    def _likelihoods(self, texts: Sequence[tuple[str, str]]) -> tuple[Scores, Scores]:
        """Return the (dual) cross-entropy of each pair, and the highest -log p of an end token."""
        entropies, endings = [], []
        for model, is_turned in self.models:
            found = model.likelihood([(target, source) for source, target in texts] if is_turned else texts)
            rows = [each.log_probabilities for each in found]
            entropies.append(np.array([-sum(row) / len(row) for row in rows]))
            endings.append(np.array([-row[-1] for row in rows]))
        if len(entropies) == 1:
            return entropies[0], endings[0]
        return abs(entropies[0] - entropies[1]) + (entropies[0] + entropies[1]) / 2, np.maximum(*endings)

    def _judge(self, window: Sequence[Pair], scores: Mapping[str, Scores]) -> Iterator[Verdict]:
        limits = {name: limit for name in SCORES if name in scores and (limit := self.limit(name)) is not None}
        for name, limit in limits.items():
            self._record(name, limit, window, scores[name])
        for place, pair in enumerate(window):
            reason = next((name for name, limit in limits.items() if scores[name][place] > limit), None)
            self.report.read += 1
            if reason is None:
                self.report.kept += 1
            else:
                self.report.dropped[reason] += 1
            yield Verdict(pair, reason)

    def _record(self, name: str, limit: float, window: Sequence[Pair], values: Scores) -> None:
        """Add a window to a score's histogram, from 0 to twice the limit, and to its pairs next to the limit."""
        edges = np.linspace(0, 2 * limit or 4, _BINS + 1)
        empty = ScoreReport(limit, edges.tolist(), [0] * _BINS, [0] * _BINS)
        report = self.report.scores.setdefault(name, empty)
        for counts, wanted in ((report.kept_counts, values <= limit), (report.dropped_counts, values > limit)):
            found, _ = np.histogram(np.clip(values[wanted], 0, edges[-1]), edges)
            counts[:] = [old + int(new) for old, new in zip(counts, found, strict=True)]
        rows = [(float(value), pair.source, pair.target) for value, pair in zip(values, window, strict=True)]
        report.kept = sorted(report.kept + [row for row in rows if row[0] <= limit], reverse=True)[:_EXAMPLES]
        report.dropped = sorted(report.dropped + [row for row in rows if row[0] > limit])[:_EXAMPLES]


def _texts(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    return [(pair.source.strip(), pair.target.strip()) for pair in pairs]


def _windows(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while window := list(itertools.islice(pairs, _WINDOW)):
        yield window
