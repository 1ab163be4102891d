"""One evaluation: translate a test set, score it, measure perplexity and the overlap with the training text.

A `System` holds the callables and settings of a model, or the name of a file of hypotheses. So this package does not
depend on the translator, and the same code evaluates both.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from transduce.data.sentence_hashes import Hashes
from transduce.evaluation.overlap import overlap_with_training
from transduce.evaluation.perplexity import TextLikelihood, likelihood_of, total_likelihood
from transduce.evaluation.protocols import Protocol
from transduce.evaluation.record import EvaluationRecord, Speed, TranslationSettings
from transduce.evaluation.reference_set import ReferenceSet
from transduce.evaluation.scores import score
from transduce.progress import Progress, Silent

_SENTENCES_AT_ONCE = 256


class SystemOutput(NamedTuple):
    """The translation of one source, and its number of tokens."""

    text: str
    tokens: int


class TranslatedTestSet(NamedTuple):
    """The translations of a test set, their number of tokens, and the time they took."""

    hypotheses: list[str]
    tokens: int
    seconds: float


@dataclass(frozen=True)
class System:
    """A model, or a file of hypotheses; the evaluation skips measures that need a field that is None."""

    name: str
    translate: Callable[[Sequence[str]], Sequence[SystemOutput]] | None = None
    log_probabilities: Callable[[Sequence[tuple[str, str]]], Sequence[Sequence[float]]] | None = None
    """Returns, for pairs of texts, log p of each target token."""
    training_hashes: Hashes | None = None
    """Sorted hashes of the training sentences."""
    settings: TranslationSettings = field(default_factory=TranslationSettings)
    threads: int = 0
    processor: str = ""


def evaluate(
    system: System,
    test: ReferenceSet,
    *,
    protocol: Protocol,
    hypotheses: Sequence[str] | None = None,
    progress: Progress = Silent(),  # noqa: B008 - it has no state
) -> tuple[EvaluationRecord, list[str]]:
    """Return the record of an evaluation and the hypotheses scored: those given, or the system's translations."""
    speed, settings = None, TranslationSettings(model_sha256=system.settings.model_sha256)
    if hypotheses is None:
        translated = translate_test_set(system, test.sources, progress=progress)
        speed, settings = _speed(translated, system), system.settings
        hypotheses = translated.hypotheses
    likelihood = _likelihood(system, test, progress=progress)
    with progress.stage("scoring", unit="sentences") as stage:
        scores, overlap = score(hypotheses, test.references, protocol=protocol), None
        if system.training_hashes is not None:
            overlap = overlap_with_training(
                test.sources, hypotheses, test.references, training_hashes=system.training_hashes, protocol=protocol
            )
        stage.advance(len(hypotheses))
    record = EvaluationRecord(
        **dict(settings),
        system=system.name,
        test=test.name,
        data=test.hashes(),
        sentences=len(test.sources),
        protocol=protocol.name,
        target_language=protocol.target_language,
        scores=scores,
        perplexity_per_piece=likelihood.perplexity_per_piece if likelihood else None,
        perplexity_per_byte=likelihood.perplexity_per_byte if likelihood else None,
        speed=speed,
        overlap=overlap,
    )
    return record, list(hypotheses)


def translate_test_set(system: System, sources: Sequence[str], *, progress: Progress) -> TranslatedTestSet:
    """Translate a test set in batches of similar length; return the hypotheses in the order of the test set."""
    assert system.translate is not None, "a system without a network needs hypotheses"
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    outputs: dict[int, SystemOutput] = {}
    began = time.perf_counter()
    with progress.stage("translating", total=len(sources), unit="sentences") as stage:
        for start in range(0, len(order), _SENTENCES_AT_ONCE):
            places = order[start : start + _SENTENCES_AT_ONCE]
            found = system.translate([sources[place] for place in places])
            outputs.update(zip(places, found, strict=True))
            stage.advance(len(places))
    seconds = time.perf_counter() - began
    in_order = [outputs[place] for place in range(len(sources))]
    return TranslatedTestSet([output.text for output in in_order], sum(output.tokens for output in in_order), seconds)


def _likelihood(system: System, test: ReferenceSet, *, progress: Progress) -> TextLikelihood | None:
    """Return the likelihood of the first list of references, if the system computes log-probabilities."""
    if system.log_probabilities is None:
        return None
    pairs = list(zip(test.sources, test.references[0], strict=True))
    parts = []
    with progress.stage("perplexity", total=len(pairs), unit="pairs") as stage:
        for start in range(0, len(pairs), _SENTENCES_AT_ONCE):
            some = pairs[start : start + _SENTENCES_AT_ONCE]
            rows = system.log_probabilities(some)
            parts += [likelihood_of(target, row) for (_, target), row in zip(some, rows, strict=True)]
            stage.advance(len(some))
    return total_likelihood(parts)


def _speed(translated: TranslatedTestSet, system: System) -> Speed:
    seconds = max(translated.seconds, 1e-9)
    return Speed(
        seconds=translated.seconds,
        sentences_per_second=len(translated.hypotheses) / seconds,
        tokens_per_second=translated.tokens / seconds,
        threads=system.threads,
        processor=system.processor,
    )
