"""The overlap of a test set with the training text, and the scores without it.

On test sentences that it was trained on, a model's score measures memory. A model directory keeps eight-byte hashes of
its training sources; a test source with one of these hashes counts as trained on, whatever its translation.
"""

from collections.abc import Sequence
from itertools import compress

from transduce.data.sentence_hashes import Hashes, are_known, sentence_hashes
from transduce.evaluation.protocols import Protocol
from transduce.evaluation.record import Overlap
from transduce.evaluation.scores import score


def trained_on(sources: Sequence[str], training_hashes: Hashes) -> list[bool]:
    """Return for each source whether its hash is among `training_hashes`, which must be sorted."""
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
    """Count the test sentences that were trained on, and score the others."""
    is_new = [not known for known in trained_on(sources, training_hashes)]
    count = is_new.count(False)
    if count == 0 or count == len(is_new):
        return Overlap(sentences=count)
    others = list(compress(hypotheses, is_new)), [list(compress(lines, is_new)) for lines in references]
    return Overlap(sentences=count, scores_without=score(*others, protocol=protocol))
