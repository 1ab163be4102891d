"""Sentences through the search, in batches of similar length, and back in the order in which they came."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from transduce.data.padding import batches_by_length, pad_ids
from transduce.data.shortlist import Shortlist
from transduce.decoding.config import DecodingConfig
from transduce.decoding.constrained_search import bank_beam, constrained_search
from transduce.decoding.constraints import Constraints
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.search import search
from transduce.networks.stepwise import Stepwise
from transduce.text.placeholders import RESERVED, Protected, restore
from transduce.translator.consensus import Decode, all_hypotheses, by_agreement

BATCH_TOKENS = 4096  # of all beams together; twice as many are 1 % faster in int8 and take 100 MB more at base size
_WORTH_A_THREAD = 256  # tokens: 40 short sentences gain a fifth by being divided; where it stops is not measured


@dataclass(frozen=True)
class Sentence:
    """A sentence to translate: which part of which text it is, its placeholders, its ids as the model reads them."""

    text: int
    place: int
    protected: Protected
    ids: tuple[int, ...]
    key: int
    """What its random draws depend on."""
    prefix: tuple[int, ...] = ()
    """What its outputs must begin with."""

    def without_foreign_symbols(self, output: str) -> str:
        """Return an output without the symbols that stand for none of its placeholders; the others stay symbols."""
        return restore(output, RESERVED[: len(self.protected.originals)])


@dataclass(frozen=True)
class Searcher:
    """A model and how many batches of sentences it takes at a time."""

    stepper: Stepwise[Any]
    decode: Decode
    """What a consensus is sought by."""
    threads: int = 1
    """An int8 kernel runs on one core, without Python's lock: threads take a batch each. Torch divides its own."""
    shortlist: Shortlist | None = None
    """What each sentence's own vocabulary is taken from; terms are enforced in the whole one."""

    def search(self, sentences: Sequence[Sentence], config: DecodingConfig) -> list[list[Hypothesis]]:
        """Return the outputs of each sentence, best first."""
        if config.consensus and not config.sample:
            offered = self.search(sentences, all_hypotheses(config).model_copy(update={"consensus": False}))
            return [by_agreement(own, decode=self.decode)[: config.alternatives] for own in offered]
        shortlist = self.shortlist

        def searched(batch: list[int]) -> list[list[Hypothesis]]:
            own = [sentences[n] for n in batch]
            return search(
                self.stepper,
                pad_ids([sentence.ids for sentence in own], padding=self.stepper.source_padding),
                config,
                numbers=[sentence.key for sentence in own],
                prefixes=[sentence.prefix for sentence in own],
                lists=None if shortlist is None else [shortlist.tokens(s.ids, also=s.prefix) for s in own],
            )

        return self._in_batches(sentences, searched, rows=config.alternatives if config.sample else config.beam)

    def search_constrained(
        self, sentences: Sequence[Sentence], config: DecodingConfig, *, constraints: Sequence[Constraints]
    ) -> list[list[Hypothesis]]:
        """Return the outputs of each sentence that meet its constraints; none where none was found."""

        def searched(batch: list[int]) -> list[list[Hypothesis]]:
            return constrained_search(
                self.stepper,
                pad_ids([sentences[n].ids for n in batch], padding=self.stepper.source_padding),
                config,
                constraints=[constraints[n] for n in batch],
                prefixes=[sentences[n].prefix for n in batch],
            )

        rows = max((own.banks * bank_beam(own, config) for own in constraints), default=1)
        return self._in_batches(sentences, searched, rows=rows)

    def _in_batches(
        self, sentences: Sequence[Sentence], searched: Callable[[list[int]], list[list[Hypothesis]]], *, rows: int
    ) -> list[list[Hypothesis]]:
        tokens = BATCH_TOKENS
        if self.threads > 1:
            # A batch for each, even where one would hold them all; three for two, since the longest take more steps.
            work = rows * sum(len(sentence.ids) for sentence in sentences)
            tokens = min(tokens, max(_WORTH_A_THREAD, 2 * work // (3 * self.threads)))
        lengths = [len(sentence.ids) for sentence in sentences]
        batches = list(batches_by_length(lengths, tokens_at_once=tokens // rows))
        is_shared = len(batches) > 1 < self.threads
        with ThreadPoolExecutor(self.threads if is_shared else 1) as pool:
            results = list(pool.map(searched, batches) if is_shared else map(searched, batches))
        found: list[list[Hypothesis]] = [[] for _ in sentences]
        for batch, hypotheses in zip(batches, results, strict=True):
            for number, own in zip(batch, hypotheses, strict=True):
                found[number] = own
        return found
