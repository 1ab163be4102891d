"""An evaluation from beginning to end, of systems so simple that every figure can be worked out by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from transduce.data.sentence_hashes import sentence_hashes
from transduce.evaluation.evaluate import System, SystemOutput, evaluate
from transduce.evaluation.protocols import detokenised, paper
from transduce.evaluation.record import TranslationSettings
from transduce.evaluation.reference_set import ReferenceSet
from transduce.evaluation.scores import score

SETTINGS = TranslationSettings(
    model_sha256="ab", beam=4, length_penalty=0.6, precision="float32", averaging="steps 1, 2"
)


@pytest.fixture
def reference_set(references: list[str]) -> ReferenceSet:
    sources = [f"{number} {line}" for number, line in enumerate(references)]
    return ReferenceSet("test.en,test.de", sources=sources, references=[references])


def drop_the_number(texts: Sequence[str]) -> list[SystemOutput]:
    return [SystemOutput(text.partition(" ")[2], tokens=len(text)) for text in texts]


def find_a_hundred_pieces_alike(pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
    return [[-math.log(100)] * (len(target) + 1) for _, target in pairs]


def test_a_system_that_knows_the_answer_scores_perfectly_in_the_order_of_the_test_set(
    reference_set: ReferenceSet, references: list[str]
) -> None:
    system = System("oracle", translate=drop_the_number, settings=SETTINGS)
    record, hypotheses = evaluate(system, reference_set, protocol=detokenised("de"))
    assert hypotheses == references, "they are translated by length and must come back in order"
    assert record.scores == score(references, [references], protocol=detokenised("de"))
    assert record.scores[0].value == pytest.approx(100)
    assert (record.system, record.test, record.sentences) == ("oracle", "test.en,test.de", len(references))
    assert (record.beam, record.length_penalty, record.precision) == (4, 0.6, "float32")
    assert (record.averaging, record.protocol, record.target_language) == ("steps 1, 2", "detokenised", "de")
    assert record.data == reference_set.hashes()
    assert record.perplexity_per_piece is None
    assert record.overlap is None


def test_speed_counts_what_was_written(reference_set: ReferenceSet) -> None:
    system = System("oracle", translate=drop_the_number, threads=2, processor="p")
    record, _ = evaluate(system, reference_set, protocol=paper("de"))
    speed = record.speed
    assert speed is not None
    assert speed.sentences_per_second == pytest.approx(len(reference_set.sources) / speed.seconds)
    assert speed.tokens_per_second == pytest.approx(sum(map(len, reference_set.sources)) / speed.seconds)
    assert (speed.threads, speed.processor) == (2, "p")


def test_given_hypotheses_are_scored_as_if_a_system_had_written_them(
    reference_set: ReferenceSet, hypotheses: list[str], references: list[str]
) -> None:
    record, scored = evaluate(System("out.txt"), reference_set, protocol=detokenised(), hypotheses=hypotheses)
    assert scored == hypotheses
    assert record.scores == score(hypotheses, [references], protocol=detokenised())
    assert (record.speed, record.beam, record.precision) == (None, None, None)


def test_the_search_of_a_model_is_not_recorded_for_hypotheses_it_did_not_write(
    reference_set: ReferenceSet, hypotheses: list[str]
) -> None:
    system = System("model", translate=drop_the_number, settings=SETTINGS)
    record, _ = evaluate(system, reference_set, protocol=detokenised(), hypotheses=hypotheses)
    assert (record.beam, record.averaging, record.model_sha256) == (None, None, "ab")


def test_perplexity_is_that_of_the_first_reference(reference_set: ReferenceSet, references: list[str]) -> None:
    system = System("uniform", log_probabilities=find_a_hundred_pieces_alike)
    record, _ = evaluate(system, reference_set, protocol=detokenised(), hypotheses=references)
    assert record.perplexity_per_piece == pytest.approx(100)
    pieces = sum(len(line) + 1 for line in references)
    octets = sum(len(line.encode("utf-8")) + 1 for line in references)
    assert record.perplexity_per_byte == pytest.approx(100 ** (pieces / octets))


def test_sentences_trained_on_are_counted(
    reference_set: ReferenceSet, hypotheses: list[str], references: list[str]
) -> None:
    hashes = np.unique(sentence_hashes(reference_set.sources[:10]))
    system = System("model", training_hashes=hashes)
    record, _ = evaluate(system, reference_set, protocol=detokenised(), hypotheses=hypotheses)
    assert record.overlap is not None
    assert record.overlap.sentences == 10
    assert record.overlap.scores_without == score(hypotheses[10:], [references[10:]], protocol=detokenised())
