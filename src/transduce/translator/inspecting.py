"""Attention reports of a translator: which sentences they are made for, and the pass that they show.

The network reads one sentence at a time, so a report is of one sentence. A text of several sentences is never cut
silently: the user chooses a sentence, or takes a report of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from transduce.errors import DataError
from transduce.inspection.pair import TokenizedSentence
from transduce.inspection.precision import TranslationSource, stepped_log_probabilities
from transduce.inspection.report import AttentionReport, inspect
from transduce.model_directory import Languages
from transduce.networks.network import Network
from transduce.networks.stepwise import Stepwise
from transduce.text.tokenizer import Tokenizer

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


@dataclass(frozen=True)
class Inspection:
    """The float32 network that reports show, and what they say about the translation."""

    network: Network
    tokenizer: Tokenizer
    """That of the targets."""
    languages: Languages
    stepper: Stepwise[Any]
    """The model that translated."""
    precision: str
    models: int
    longest_sentence: int
    extra_length: int
    is_forced: bool
    with_numbers: bool

    def report(self, source: TokenizedSentence, target: TokenizedSentence) -> AttentionReport:
        """Return the report of one pair; a sentence that is longer than those of the training is refused."""
        self._refuse_long(source.ids, longest=self.longest_sentence)
        self._refuse_long(target.ids, longest=self.longest_sentence + self.extra_length)
        translated = TranslationSource(
            precision=self.precision,
            models=self.models,
            is_forced=self.is_forced,
            log_probabilities=stepped_log_probabilities(self.stepper, source.ids, target.ids),
        )
        return inspect(
            self.network,
            self.tokenizer,
            replace(source, language=self.languages.source),
            replace(target, language=self.languages.target),
            translated=translated,
            with_numbers=self.with_numbers,
        )

    def _refuse_long(self, ids: Sequence[int], *, longest: int) -> None:
        if len(ids) > longest:
            raise DataError(
                f"The sentence has {len(ids):,} tokens and this model has seen at most {self.longest_sentence:,}. "
                "Look at one sentence at a time."
            )


def _refuse_empty(sentences: Sequence[str]) -> None:
    if not sentences:
        raise DataError("There is no attention to show: the text is empty.")


def _counted(sentences: int) -> str:
    return "1 sentence" if sentences == 1 else f"{sentences} sentences"
