"""Tasks that need torch networks: translation in float32 or bf16, likelihoods, attention reports.

`Translator` imports this module only for these tasks: translating in int8 needs no torch.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from transduce.compute import torch_threads
from transduce.decoding.forced import forced_log_probabilities
from transduce.errors import DataError
from transduce.evaluation.likelihood import EncodedPair, log_probabilities_of_pairs
from transduce.inspection.contract import HeadNumbersEntry
from transduce.inspection.head_numbers import head_numbers
from transduce.inspection.pair import TokenizedSentence
from transduce.inspection.report import AttentionReport, TranslationSource, inspect
from transduce.machine import TrainingPrecision
from transduce.model_directory import Languages, ModelDirectory
from transduce.networks.network import Network
from transduce.networks.stepwise import Stepwise
from transduce.networks.torch_stepper import TorchStepper
from transduce.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TorchModels:
    """The networks of one model, or of several as an ensemble."""

    read: Sequence[Callable[[], ModelDirectory]]
    """Each returns a model with its weights."""
    precision: TrainingPrecision
    given_threads: int | None

    @property
    def threads(self) -> int:
        """The number of threads that compute: torch's own setting unless given."""
        return self.given_threads or torch.get_num_threads()

    def computing(self) -> AbstractContextManager[None]:
        """Set torch's threads inside the block."""
        return torch_threads(self.given_threads)

    @cached_property
    def networks(self) -> list[Network]:
        """The networks in their precision."""
        dtype = {"bf16": torch.bfloat16, "float32": torch.float32}[self.precision]
        return [read().network().to(dtype) for read in self.read]

    def steppers(self) -> list[Stepwise[Any]]:
        """Return the networks for search."""
        return [TorchStepper(network) for network in self.networks]

    def log_probabilities(self, pairs: Sequence[EncodedPair]) -> list[list[float]]:
        """Return log p of each target token of each pair, by the first network."""
        with self.computing():
            return log_probabilities_of_pairs(self.networks[0], pairs)

    def float32_network(self) -> Network:
        """Return the first network in float32: the loaded one if it is in float32, else one that is read again."""
        return (
            self.networks[0] if "networks" in vars(self) and self.precision == "float32" else self.read[0]().network()
        )

    def head_numbers(
        self, *, source: Sequence[int], target: Sequence[int], stack: str, layer: int, head: int
    ) -> HeadNumbersEntry:
        """Return q, k and v of one head of the block named `stack` of the first network."""
        with self.computing():
            return head_numbers(self.float32_network(), source, target, stack, layer, head)


@dataclass(frozen=True)
class Inspection:
    """The float32 network that attention reports show, and the facts about the translation."""

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
        """Return the report of one pair; refuse a sentence that is longer than the training sentences."""
        self._refuse_long(source.ids, longest=self.longest_sentence)
        self._refuse_long(target.ids, longest=self.longest_sentence + self.extra_length)
        translated = TranslationSource(
            precision=self.precision,
            models=self.models,
            is_forced=self.is_forced,
            log_probabilities=tuple(forced_log_probabilities(self.stepper, [(source.ids, target.ids)])[0]),
        )
        report = inspect(
            self.network,
            self.tokenizer,
            replace(source, language=self.languages.source),
            replace(target, language=self.languages.target),
            translated=translated,
            with_numbers=self.with_numbers,
        )
        # A language model has read the start token alone, which is no sentence to show.
        return report if source.text else replace(report, source=replace(report.source, tokens=()))

    def _refuse_long(self, ids: Sequence[int], *, longest: int) -> None:
        if len(ids) > longest:
            raise DataError(
                f"The sentence has {len(ids):,} tokens and this model has seen at most {self.longest_sentence:,}. "
                "Look at one sentence at a time."
            )
