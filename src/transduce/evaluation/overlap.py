"""Test sentences that were in the training text: how many, and what the score is without them.

A model has seen their translations, so they measure memory. A model directory keeps eight-byte hashes of its
training sources; a test source that hashes to one of them was trained on, whatever its translation was.
"""

from collections.abc import Sequence
from itertools import compress

from transduce.data.sentence_hashes import Hashes, are_known, sentence_hashes
from transduce.evaluation.protocols import Protocol
from transduce.evaluation.record import Overlap
from transduce.evaluation.scores import score


def trained_on(sources: Sequence[str], training_hashes: Hashes) -> list[bool]:
    """Tell for each source whether its hash is among those of the training text, which are sorted."""
    known: list[bool] = are_known(sentence_hashes(sources), training_hashes).tolist()
    return known


def overlap_with_training(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    training_hashes: Hashes,
    protocol: Protocol,
) -> Overlap:
    """Count the test sentences that were trained on and score the others alone."""
    is_new = [not known for known in trained_on(sources, training_hashes)]
    count = is_new.count(False)
    if count == 0 or count == len(is_new):
        return Overlap(sentences=count)
    others = list(compress(hypotheses, is_new)), [list(compress(lines, is_new)) for lines in references]
    return Overlap(sentences=count, scores_without=score(*others, protocol=protocol))
