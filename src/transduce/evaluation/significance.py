"""Significance of the difference between two systems, by sacrebleu's paired bootstrap resampling.

sacrebleu draws a thousand test sets with replacement from the sentences and scores both systems on each. The p-value is
the share of draws in which the difference deviates from its mean by more than the observed difference. The draws have a
fixed seed (12345, or the environment variable SACREBLEU_SEED), so the result is reproducible.

Departure from sacrebleu: two systems with the same score have a p-value of 1, where sacrebleu may report its lowest.
"""

import contextlib
import logging
import math
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel
from sacrebleu.significance import PairedTest, Result, _bootstrap_resample

from transduce.errors import DataError
from transduce.evaluation.protocols import Protocol
from transduce.evaluation.scores import require_equal_counts

SAMPLES = 1000


class Interval(BaseModel, frozen=True, extra="forbid"):
    """The 95 % confidence interval of a score: `mean` ± `half_width`."""

    mean: float
    half_width: float


class Difference(BaseModel, frozen=True, extra="forbid"):
    """One score of two systems on the same sentences, and the p-value of the difference."""

    name: str
    baseline: float
    system: float
    p_value: float
    baseline_interval: Interval
    system_interval: Interval
    signature: str

    @property
    def is_significant(self) -> bool:
        """Whether the p-value is below 0.05."""
        return self.p_value < 0.05


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    protocol: Protocol,
    samples: int = SAMPLES,
) -> tuple[Difference, ...]:
    """Compare the hypotheses of two systems for the same test set by each score of the protocol."""
    if not references:
        raise DataError("There is nothing to score against: no reference was given.")
    numbered = {f"reference {number}": lines for number, lines in enumerate(references, start=1)}
    require_equal_counts({"the first system": baseline, "the second system": system, **numbered})
    first, second = protocol.prepared(baseline), protocol.prepared(system)
    prepared_references = [protocol.prepared(lines) for lines in references]
    differences = []
    # One test for each score: sacrebleu stores results by its own names, which two BLEUs would share.
    for name, metric in protocol.make_metrics().items():
        with _no_log_lines():
            test = PairedTest(
                [("baseline", first), ("system", second)],
                metrics={name: metric},
                references=prepared_references,
                test_type="bs",
                n_samples=samples,
            )
            signatures, results = test()
        ((own_name, signature),) = signatures.items()
        differences.append(_difference(name, results[own_name], signature=protocol.signature(str(signature))))
    return tuple(found for found in differences if not math.isnan(found.system))  # without those that do not apply


def intervals_of_differences(
    baseline: Sequence[str], system: Sequence[str], references: Sequence[Sequence[str]], *, protocol: Protocol
) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of system minus baseline for each score: both on the same draws of sentences."""
    prepared_references = [protocol.prepared(lines) for lines in references]
    intervals = {}
    for name, metric in protocol.make_metrics().items():
        drawn = []
        for hypotheses in (baseline, system):
            statistics = metric._extract_corpus_statistics(protocol.prepared(hypotheses), prepared_references)
            _, scores = _bootstrap_resample(statistics, metric, SAMPLES)  # draws the same sentences each time
            drawn.append(np.array([score.score for score in scores]))
        low, high = np.quantile(drawn[1] - drawn[0], [0.025, 0.975])
        intervals[name] = (float(low), float(high))
    return intervals


def _difference(name: str, results: Sequence[str | Result], *, signature: str) -> Difference:
    baseline, system = results
    assert isinstance(baseline, Result)
    assert isinstance(system, Result)
    assert system.p_value is not None
    return Difference(
        name=name,
        baseline=baseline.score,
        system=system.score,
        p_value=system.p_value if system.score != baseline.score else 1.0,
        baseline_interval=_interval(baseline),
        system_interval=_interval(system),
        signature=signature,
    )


def _interval(result: Result) -> Interval:
    assert result.mean is not None
    assert result.ci is not None
    return Interval(mean=float(result.mean), half_width=float(result.ci))


@contextlib.contextmanager
def _no_log_lines() -> Iterator[None]:
    """Silence the log of sacrebleu below errors while the block runs; it warns on Windows, for example."""
    logger = logging.getLogger("sacrebleu")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
