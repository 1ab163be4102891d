"""One evaluation from beginning to end: translate, score, perplexity, overlap with the training text, comparison.

What is evaluated is handed in as a `System`: a few callables and facts. So this room knows neither the translator
nor how a search works, and a list of given hypotheses is evaluated by the same code as a network.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from transduce.data.sentence_hashes import Hashes
from transduce.evaluation.overlap import overlap_with_training
from transduce.evaluation.perplexity import TextLikelihood, likelihood_of, total_likelihood
from transduce.evaluation.protocols import Protocol
from transduce.evaluation.record import EvaluationRecord, Overlap, Speed
from transduce.evaluation.reference_set import ReferenceSet
from transduce.evaluation.scores import score
from transduce.evaluation.significance import SAMPLES, Difference, paired_bootstrap
from transduce.progress import Progress, Silent

_SENTENCES_AT_ONCE = 256


class Output(NamedTuple):
    """What became of one source: the text, and how many pieces were written for it."""

    text: str
    tokens: int


class Translated(NamedTuple):
    """A test set translated, and how long it took."""

    hypotheses: list[str]
    tokens: int
    seconds: float


@dataclass(frozen=True)
class Facts:
    """How the hypotheses came to be, for the record; unset where they were given."""

    model_sha256: str | None = None
    beam: int | None = None
    length_penalty: float | None = None
    shortlist: bool | None = None
    consensus: bool | None = None
    precision: str | None = None
    averaging: str | None = None
    threads: int = 0
    processor: str = ""


@dataclass(frozen=True)
class System:
    """What is evaluated. Whatever is unset is left out of the evaluation."""

    name: str
    translate: Callable[[Sequence[str]], Sequence[Output]] | None = None
    log_probabilities: Callable[[Sequence[tuple[str, str]]], Sequence[Sequence[float]]] | None = None
    """log p of each target piece of pairs of text."""
    training_hashes: Hashes | None = None
    """Hashes of the sentences it was trained on, sorted."""
    facts: Facts = field(default_factory=Facts)


def evaluate(
    system: System,
    test: ReferenceSet,
    *,
    protocol: Protocol,
    hypotheses: Sequence[str] | None = None,
    progress: Progress = Silent(),  # noqa: B008 - it has no state
) -> tuple[EvaluationRecord, list[str]]:
    """Return the record of an evaluation and the hypotheses scored: `hypotheses`, or else the system's own."""
    speed = None
    if hypotheses is None:
        translated = translate_test_set(system, test.sources, progress=progress)
        speed = _speed(translated, sentences=len(test.sources), facts=system.facts)
        hypotheses = translated.hypotheses
    likelihood = _likelihood(system, test, progress=progress)
    with progress.stage("scoring", unit="sentences") as stage:
        scores = score(hypotheses, test.references, protocol=protocol)
        overlap = _overlap(system, test, hypotheses, protocol=protocol)
        stage.advance(len(hypotheses))
    facts = system.facts if speed else Facts(model_sha256=system.facts.model_sha256)
    record = EvaluationRecord(
        system=system.name,
        model_sha256=facts.model_sha256,
        test=test.name,
        data=test.hashes(),
        sentences=len(test.sources),
        beam=facts.beam,
        length_penalty=facts.length_penalty,
        shortlist=facts.shortlist,
        consensus=facts.consensus,
        precision=facts.precision,
        averaging=facts.averaging,
        protocol=protocol.name,
        target_language=protocol.target_language,
        scores=scores,
        perplexity_per_piece=likelihood.perplexity_per_piece if likelihood else None,
        perplexity_per_byte=likelihood.perplexity_per_byte if likelihood else None,
        speed=speed,
        overlap=overlap,
    )
    return record, list(hypotheses)


def compare_with_baseline(
    baseline: Sequence[str],
    hypotheses: Sequence[str],
    test: ReferenceSet,
    *,
    protocol: Protocol,
    samples: int = SAMPLES,
    progress: Progress = Silent(),  # noqa: B008 - it has no state
) -> tuple[Difference, ...]:
    """Test by paired bootstrap whether hypotheses differ from a baseline's by more than chance."""
    with progress.stage("comparing", unit="samples") as stage:
        differences = paired_bootstrap(baseline, hypotheses, test.references, protocol=protocol, samples=samples)
        stage.advance(samples)
    return differences


def translate_test_set(system: System, sources: Sequence[str], *, progress: Progress) -> Translated:
    """Translate a test set by length, so that batches are full and progress is even; outputs are in its order."""
    assert system.translate is not None, "a system without a network needs hypotheses"
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    outputs: dict[int, Output] = {}
    began = time.perf_counter()
    with progress.stage("translating", total=len(sources), unit="sentences") as stage:
        for start in range(0, len(order), _SENTENCES_AT_ONCE):
            places = order[start : start + _SENTENCES_AT_ONCE]
            found = system.translate([sources[place] for place in places])
            outputs.update(zip(places, found, strict=True))
            stage.advance(len(places))
    seconds = time.perf_counter() - began
    in_order = [outputs[place] for place in range(len(sources))]
    return Translated([output.text for output in in_order], sum(output.tokens for output in in_order), seconds)


def _likelihood(system: System, test: ReferenceSet, *, progress: Progress) -> TextLikelihood | None:
    """Return how probable the system finds the first references, if it can tell."""
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


def _overlap(system: System, test: ReferenceSet, hypotheses: Sequence[str], *, protocol: Protocol) -> Overlap | None:
    """Return which of the sentences the system was trained on, if it kept their hashes."""
    if system.training_hashes is None:
        return None
    return overlap_with_training(
        test.sources, hypotheses, test.references, training_hashes=system.training_hashes, protocol=protocol
    )


def _speed(translated: Translated, *, sentences: int, facts: Facts) -> Speed:
    seconds = max(translated.seconds, 1e-9)
    return Speed(
        seconds=translated.seconds,
        sentences_per_second=sentences / seconds,
        tokens_per_second=translated.tokens / seconds,
        threads=facts.threads,
        processor=facts.processor,
    )
