"""Scores by sacrebleu, each with its signature.

sacrebleu computes every score here; the numbers equal those of its command line to the last digit.
"""

import math
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from transduce.errors import DataError
from transduce.evaluation.protocols import Protocol


class Score(BaseModel, frozen=True, extra="forbid"):
    """One score of a translated test set."""

    name: str
    value: float
    signature: str
    detail: str = ""
    """For BLEU: the four precisions, the brevity penalty and the lengths."""


def score(hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, protocol: Protocol) -> tuple[Score, ...]:
    """Return the scores of `hypotheses` against one or more lists of references, with one line for each hypothesis."""
    if not references:
        raise DataError("There is nothing to score against: no reference was given.")
    numbered = {f"reference {number}": lines for number, lines in enumerate(references, start=1)}
    require_equal_counts({"the list of hypotheses": hypotheses, **numbered})
    prepared_hypotheses = protocol.prepared(hypotheses)
    prepared_references = [protocol.prepared(lines) for lines in references]
    scores = []
    for name, metric in protocol.make_metrics().items():
        result = metric.corpus_score(prepared_hypotheses, prepared_references)
        if math.isnan(result.score):  # it does not apply, such as the accuracy of tags that the output lacks
            continue
        detail = str(result).partition(" = ")[2].partition(" ")[2]  # "BLEU = 71.56 92.9/83.3/80.0/75.0 (BP = …)"
        signature = protocol.signature(str(metric.get_signature()))
        scores.append(Score(name=name, value=result.score, signature=signature, detail=detail))
    return tuple(scores)


def require_equal_counts(named_lines: Mapping[str, Sequence[str]]) -> None:
    """Raise DataError if a list is empty or the lengths differ; the error shows the names of the lists."""
    counts = {name: len(lines) for name, lines in named_lines.items()}
    for name, count in counts.items():
        if count == 0:
            raise DataError(f"There is nothing to score: {name} has no lines.")
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise DataError(
            f"The numbers of lines differ: {listed}. Line n of each must belong to sentence n; look for a line that is "
            "missing or broken in two."
        )


def lines_that_look_tokenised(hypotheses: Sequence[str]) -> int:
    """Count hypotheses that end in a separate full stop; many of them mean that the text is still tokenised."""
    return sum(line.rstrip().endswith(" .") for line in hypotheses)
