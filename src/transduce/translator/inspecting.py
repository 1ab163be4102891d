"""The choice of sentences for a translator's attention reports.

The network reads one sentence at a time, so a report is of one sentence. A text of several sentences is never cut
silently: the user chooses a sentence, or takes a report of each.
"""

from collections.abc import Sequence

from transduce.errors import DataError

_MOST_REPORTS = 32
"""Reports made at once: 30 tokens of a base model take 0.35 MB each."""


def choose_sentence(sentences: Sequence[str], number: int | None) -> str:
    """Return the sentence of that number, counted from 1; None chooses the only one."""
    _refuse_empty(sentences)
    if number is None and len(sentences) > 1:
        raise DataError(
            f"The text has {len(sentences)} sentences, and a report shows one. Choose it with sentence=1 to "
            f"{len(sentences)}, or call attention_by_sentence for all."
        )
    if number is not None and not 1 <= number <= len(sentences):
        raise DataError(f"There is no sentence {number}: the text has {_counted(len(sentences))}, counted from 1.")
    return sentences[(number or 1) - 1]


def choose_all(sentences: Sequence[str]) -> Sequence[str]:
    """Return all sentences, unless there are none or too many for one page."""
    _refuse_empty(sentences)
    if len(sentences) > _MOST_REPORTS:
        raise DataError(
            f"The text has {len(sentences):,} sentences; at most {_MOST_REPORTS} can be shown at once. "
            "Choose one by its number, or give a shorter text."
        )
    return sentences


def choose_lines(text: str) -> Sequence[str]:
    """Return the lines of a text that are not empty, unless there are none or too many for one page."""
    return choose_all([line for line in text.splitlines() if line.strip()])


def _refuse_empty(sentences: Sequence[str]) -> None:
    if not sentences:
        raise DataError("There is no attention to show: the text is empty.")


def _counted(sentences: int) -> str:
    return "1 sentence" if sentences == 1 else f"{sentences} sentences"
