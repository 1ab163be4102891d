"""Scores by sacrebleu, each with the signature that makes it comparable.

Nothing is counted here: hypotheses and references go to sacrebleu as its command line would read them, and the
numbers that come back are the command line's to the last digit.
"""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from transduce.errors import DataError
from transduce.evaluation.protocols import Protocol


class Score(BaseModel, frozen=True, extra="forbid"):
    """One number about a translation of a test set."""

    name: str
    value: float
    signature: str
    detail: str = ""
    """For BLEU the four precisions, the brevity penalty and the lengths."""


def score(hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, protocol: Protocol) -> tuple[Score, ...]:
    """Return the protocol's scores of `hypotheses` against one or more lists of references.

    Each list of references has one line for each hypothesis.
    """
    if not references:
        raise DataError("There is nothing to score against: no reference was given.")
    numbered = {f"reference {number}": lines for number, lines in enumerate(references, start=1)}
    require_equal_counts({"the list of hypotheses": hypotheses, **numbered})
    prepared_hypotheses = protocol.prepared(hypotheses)
    prepared_references = [protocol.prepared(lines) for lines in references]
    scores = []
    for name, metric in protocol.make_metrics().items():
        result = metric.corpus_score(prepared_hypotheses, prepared_references)
        detail = str(result).partition(" = ")[2].partition(" ")[2]  # "BLEU = 71.56 92.9/83.3/80.0/75.0 (BP = …)"
        signature = protocol.signature(str(metric.get_signature()))
        scores.append(Score(name=name, value=result.score, signature=signature, detail=detail))
    return tuple(scores)


def require_equal_counts(named_lines: Mapping[str, Sequence[str]]) -> None:
    """Refuse lists that are empty or of unequal length; their names tell the user where to look."""
    counts = {name: len(lines) for name, lines in named_lines.items()}
    for name, count in counts.items():
        if count == 0:
            raise DataError(f"There is nothing to score: {name} has no lines.")
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise DataError(
            f"The numbers of lines differ: {listed}. Line n of each must be about sentence n; "
            "look for a line that was left out or broken in two."
        )


def lines_that_look_tokenised(hypotheses: Sequence[str]) -> int:
    """Count hypotheses that end in a full stop set apart; many of them mean that detokenising was forgotten."""
    return sum(line.rstrip().endswith(" .") for line in hypotheses)
