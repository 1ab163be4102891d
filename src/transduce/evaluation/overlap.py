"""The overlap of a test set with the training text, and the scores without it.

A model's score on sentences that it was trained on measures memory. A model directory keeps eight-byte hashes of its
training sources; a test source with one of these hashes counts as trained on, whatever its translation. Differences of
case, spaces and punctuation do not count, except for models of earlier versions, which keep only exact hashes.
"""

from collections.abc import Sequence
from itertools import compress

from transduce.data.sentence_hashes import Hashes, are_known, hashes_after_folding, sentence_hashes
from transduce.evaluation.protocols import Protocol
from transduce.evaluation.record import Overlap
from transduce.evaluation.scores import score


def trained_on(sources: Sequence[str], training_hashes: Hashes) -> list[bool]:
    """Return for each source whether its hash is among `training_hashes`, which must be sorted."""
    plain, folded = (are_known(hashes(sources), training_hashes) for hashes in (sentence_hashes, hashes_after_folding))
    known: list[bool] = (plain | folded).tolist()
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
