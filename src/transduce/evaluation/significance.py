"""Is the difference between two systems more than luck? Paired bootstrap resampling, by sacrebleu.

The test set is drawn again a thousand times, with replacement, and both systems are scored on each draw. The p-value
is the share of draws in which the difference strays from its mean by more than the difference that was observed.
The draws come from a fixed seed (12345, or the environment's SACREBLEU_SEED), so the answer is always the same.

Departure: for two systems with the same score sacrebleu may give the smallest p-value there is; here it is 1.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from sacrebleu.significance import PairedTest, Result

from transduce.errors import DataError
from transduce.evaluation.protocols import Protocol
from transduce.evaluation.scores import require_equal_counts

SAMPLES = 1000


class Interval(BaseModel, frozen=True, extra="forbid"):
    """Where a score lies with 95 % confidence: `mean` ± `half_width`."""

    mean: float
    half_width: float


class Difference(BaseModel, frozen=True, extra="forbid"):
    """One score of two systems on the same sentences, and how likely chance alone explains the difference."""

    name: str
    baseline: float
    system: float
    p_value: float
    baseline_interval: Interval
    system_interval: Interval
    signature: str

    @property
    def is_significant(self) -> bool:
        """Whether chance explains a difference this large in fewer than 5 cases of 100."""
        return self.p_value < 0.05


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    protocol: Protocol,
    samples: int = SAMPLES,
) -> tuple[Difference, ...]:
    """Compare two systems' hypotheses for the same test set in each of the protocol's scores."""
    if not references:
        raise DataError("There is nothing to score against: no reference was given.")
    numbered = {f"reference {number}": lines for number, lines in enumerate(references, start=1)}
    require_equal_counts({"the first system": baseline, "the second system": system, **numbered})
    first, second = protocol.prepared(baseline), protocol.prepared(system)
    prepared_references = [protocol.prepared(lines) for lines in references]
    differences = []
    # One test for each score: sacrebleu keeps them under its own names, which two BLEUs would share.
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
    return tuple(differences)


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
    """Keep sacrebleu's log, such as what it cannot do on Windows, off a user's screen: only the command line prints."""
    logger = logging.getLogger("sacrebleu")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
