"""Search for many sentences in batches of similar length; results are in the order of the sentences."""

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
from transduce.decoding.tree_search import TreeSymbols, tree_search
from transduce.networks.stepwise import Stepwise
from transduce.text.placeholders import RESERVED, Protected, restore
from transduce.translator.consensus import Decode, all_hypotheses, by_agreement

BATCH_TOKENS = 4096  # of all beams together; 8192 are 1 % faster in int8 and take 100 MB more at base size
_WORTH_A_THREAD = 256  # least tokens of a batch: 40 short sentences are a fifth faster; the best value was not measured


@dataclass(frozen=True)
class Sentence:
    """A sentence to translate: which part of which text it is, its placeholders, its ids as the model reads them."""

    text: int
    place: int
    protected: Protected
    ids: tuple[int, ...]
    key: int
    """The key of its random draws."""
    prefix: tuple[int, ...] = ()
    """The tokens that its outputs must begin with."""

    def without_foreign_symbols(self, output: str) -> str:
        """Return an output without the symbols that have no placeholder in the source; the others stay symbols."""
        return restore(output, RESERVED[: len(self.protected.originals)])


@dataclass(frozen=True)
class Searcher:
    """Searches sentences with one model, `threads` batches at a time."""

    stepper: Stepwise[Any]
    decode: Decode
    """Maps tokens to the texts that consensus compares."""
    threads: int = 1
    """Batches searched at once. The C++ core searches a batch in one thread; torch has its own threads."""
    shortlist: Shortlist | None = None
    """Gives each sentence a vocabulary of its own; constrained search uses the whole vocabulary."""

    def search(self, sentences: Sequence[Sentence], config: DecodingConfig) -> list[list[Hypothesis]]:
        """Return the outputs of each sentence, best first; no two have the same text, unless they are samples."""
        if config.sample or (config.alternatives == 1 and not config.consensus):
            return self._search(sentences, config)
        if config.consensus:
            offered = self._search(sentences, all_hypotheses(config))
            ranked = [by_agreement(own, decode=self.decode) for own in offered]
            return [self._distinct(own)[: config.alternatives] for own in ranked]
        found = [self._distinct(own) for own in self._search(sentences, config)]
        short = [n for n, own in enumerate(found) if len(own) < config.alternatives]
        # Several tokenizations of one text take several places in the beam; twice the width has room for more texts.
        twice = {"beam": 2 * config.beam, "alternatives": 2 * config.alternatives}
        wider = self._search([sentences[n] for n in short], config.model_copy(update=twice))
        for n, more in zip(short, wider, strict=True):
            best, *others = found[n]
            others = sorted((*others, *more), key=lambda hypothesis: -hypothesis.score)
            found[n] = self._distinct([best, *others])[: config.alternatives]
        return found

    def _distinct(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses of one sentence without those whose text an earlier one has."""
        by_text: dict[str, Hypothesis] = {}
        for hypothesis in hypotheses:
            by_text.setdefault(self.decode(hypothesis.tokens), hypothesis)
        return list(by_text.values())

    def _search(self, sentences: Sequence[Sentence], config: DecodingConfig) -> list[list[Hypothesis]]:
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
        """Return the outputs of each sentence that meet its constraints; the list is empty if there are none."""

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

    def search_trees(
        self, sentences: Sequence[Sentence], config: DecodingConfig, *, symbols: TreeSymbols, words: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Return the outputs of each sentence that are trees; `words` says how many words each sentence has."""

        def searched(batch: list[int]) -> list[list[Hypothesis]]:
            return tree_search(
                self.stepper,
                pad_ids([sentences[n].ids for n in batch], padding=self.stepper.source_padding),
                config,
                symbols=symbols,
                words=[words[n] for n in batch],
            )

        return self._in_batches(sentences, searched, rows=config.beam)

    def _in_batches(
        self, sentences: Sequence[Sentence], searched: Callable[[list[int]], list[list[Hypothesis]]], *, rows: int
    ) -> list[list[Hypothesis]]:
        tokens = BATCH_TOKENS
        if self.threads > 1:
            # Make three batches for every two threads, even if one batch could hold all sentences: batches of long
            # sentences take more steps, and the thread that is done first takes the third batch.
            work = rows * sum(len(sentence.ids) for sentence in sentences)
            tokens = min(tokens, max(_WORTH_A_THREAD, 2 * work // (3 * self.threads)))
        lengths = [len(sentence.ids) for sentence in sentences]
        batches = list(batches_by_length(lengths, tokens_at_once=tokens // rows))
        if len(batches) > 1 < self.threads:
            with ThreadPoolExecutor(self.threads) as pool:
                results = list(pool.map(searched, batches))
        else:
            results = list(map(searched, batches))
        found: list[list[Hypothesis]] = [[] for _ in sentences]
        for batch, hypotheses in zip(batches, results, strict=True):
            for number, own in zip(batch, hypotheses, strict=True):
                found[number] = own
        return found
