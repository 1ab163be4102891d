"""Labelled brackets as EVALB counts them with the parameters COLLINS.prm (section 6.3, Table 4).

    precision = matched / brackets of the output      recall = matched / brackets of the treebank      F1 of both

Over the whole test set. A bracket is a label and the words from its first to its last. Punctuation (the tags , : `` ''
and .) counts in no span, and a bracket of punctuation alone does not count. The root does not count, functions are cut
off labels, and ADVP equals PRT. Exact match is the share of sentences whose brackets all match; tagging accuracy that
of words with the right tag, if the output has tags.

Departures: what is punctuation is read from the tags of the treebank, since the outputs of a model may have none; an
output that is no tree over the words counts as one without brackets, where EVALB would leave out the sentence.

A tree is compared in its linear form (`text/trees.py`), or in brackets, which are converted.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric, Signature
from sacrebleu.metrics.base import Score as SacrebleuScore

from transduce.errors import DataError
from transduce.text.trees import WORD_SLOT, Tree, linear_form, prepared_tree, read_trees, tree_of

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
MEASURES = ("F1", "precision", "recall", "exact match", "tagging accuracy", "invalid output")

Bracket = tuple[str, int, int]


def linear_line(line: str) -> str:
    """Return a tree in brackets in its linear form, and any other line as it is."""
    try:
        trees = [tree for _, tree in read_trees([line], name="line")]
    except DataError:
        return line
    tree = prepared_tree(trees[0]) if len(trees) == 1 else None
    return line if tree is None else " ".join(linear_form(tree, keeps_tags=True)[1])


def tree_of_line(line: str, *, words: int | None = None) -> Tree | None:
    """Return the tree of a linear form, its words numbered, or None if it is no tree over this many words."""
    symbols = line.split()
    count = sum(symbol[0] not in "()" for symbol in symbols)
    try:
        return tree_of([str(place) for place in range(count if words is None else words)], symbols)
    except DataError:
        return None


def brackets_of(tree: Tree, *, is_punctuation: Sequence[bool]) -> Counter[Bracket]:
    """Return the brackets of a tree under its root, with spans over the words that are no punctuation."""
    starts = [0]
    for is_left_out in is_punctuation:
        starts.append(starts[-1] + (not is_left_out))
    found: Counter[Bracket] = Counter()

    def visit(node: Tree, first: int) -> int:
        if node.word is not None:
            return first + 1
        last = first
        for child in node.children:
            last = visit(child, last)
        label = node.label.partition("-")[0].partition("=")[0]
        if starts[last] > starts[first]:
            found["ADVP" if label == "PRT" else label, starts[first], starts[last]] += 1
        return last

    place = 0
    for child in tree.children:
        place = visit(child, place)
    return found


def statistics_of(output: str, reference: str) -> list[int]:
    """Return the counts of a sentence, in the order in which `BracketMetric` reads them."""
    gold = tree_of_line(reference)
    if gold is None:
        raise DataError(f"This reference is no tree: {reference[:80]!r}. The test set must be a .ptb or .mrg file.")
    tags = [leaf.label for leaf in gold.leaves()]
    if WORD_SLOT in tags:
        raise DataError(f"This reference has {WORD_SLOT} for tags: {reference[:80]!r}. Name the treebank as test set.")
    is_punctuation = [tag in PUNCTUATION for tag in tags]
    wanted = brackets_of(gold, is_punctuation=is_punctuation)
    tree = tree_of_line(output, words=len(tags))
    if tree is None:
        return [0, 0, wanted.total(), 1, 0, 0, 0, 1]
    found = brackets_of(tree, is_punctuation=is_punctuation)
    own = [leaf.label for leaf in tree.leaves()]
    has_tags = WORD_SLOT not in own
    right = sum(a == b for a, b in zip(own, tags, strict=True)) if has_tags else 0
    matched = (found & wanted).total()
    return [matched, found.total(), wanted.total(), 1, found == wanted, right, has_tags * len(tags), 0]


class BracketSignature(Signature):
    """What the numbers depend on."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(dict(args))
        self.info = {"nrefs": args["num_refs"], "brackets": "EVALB-COLLINS", "invalid": "no brackets", "version": "1"}


class BracketMetric(Metric):
    """One of `MEASURES` in percent, in the form of a metric of sacrebleu."""

    _SIGNATURE_TYPE = BracketSignature

    def __init__(self, measure: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.measure = measure

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, str]:
        return {"reference": refs[0]}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: Mapping[str, str]) -> list[int]:
        return statistics_of(hypothesis, ref_kwargs["reference"])

    def _aggregate_and_compute(self, stats: Iterable[Sequence[int]]) -> SacrebleuScore:
        return self._compute_score_from_stats(np.array(list(stats)).sum(axis=0).tolist())

    def _compute_score_from_stats(self, stats: Sequence[int]) -> SacrebleuScore:
        matched, found, wanted, sentences, exact, right, tagged, invalid = (int(count) for count in stats)
        shares = {
            "F1": (2 * matched, found + wanted),
            "precision": (matched, found),
            "recall": (matched, wanted),
            "exact match": (exact, sentences),
            "tagging accuracy": (right, tagged),
            "invalid output": (invalid, sentences),
        }
        part, whole = shares[self.measure]
        if self.measure == "tagging accuracy" and not whole:
            return SacrebleuScore(self.measure, math.nan)
        return SacrebleuScore(self.measure, 100.0 * part / max(whole, 1))


def bracket_metrics() -> dict[str, Metric]:
    """Return a metric for each of `MEASURES`."""
    return {measure: BracketMetric(measure) for measure in MEASURES}
