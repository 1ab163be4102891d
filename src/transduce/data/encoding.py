"""The last stage of preparation: encode text as token ids and stream them into a store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transduce.data.cleaning import Dropped, Rule, length_fault
from transduce.data.config import DataConfig
from transduce.data.corpus_text import CorpusText
from transduce.data.portions import in_portions
from transduce.data.token_store import TokenStoreWriter, token_store_written
from transduce.progress import Progress
from transduce.text.normalization import normalize
from transduce.text.placeholders import ProtectedPair, protect_pair
from transduce.text.tokenizer_pair import TokenizerPair

PairRows = NDArray[np.int64]
"""Indices of pairs in a `CorpusText`."""


@dataclass(frozen=True)
class SplitPairs:
    """The pairs of one split, and the rules that their lengths must follow."""

    text: CorpusText
    rows: PairRows
    rules: frozenset[Rule]
    is_held_out: bool = False


def segmentable(pair: ProtectedPair) -> tuple[str, str]:
    """Return the text of a pair as tokenizers segment it: normalised, with symbols for the placeholders."""
    return normalize(pair.source), normalize(pair.target)


def lines_to_learn_from(share: SplitPairs, *, sides: Sequence[int] = (0, 1)) -> Iterator[str]:
    """Yield the sides of a share's pairs, source 0 and target 1, with placeholders replaced; learning normalises."""
    for row in share.rows:
        pair = protect_pair(*share.text.pair(int(row)))
        both = pair.source, pair.target
        yield from (both[side] for side in sides)


class StoreBuilder:
    """Builds token stores with the tokenizers of one model."""

    def __init__(self, tokenizers: TokenizerPair, config: DataConfig, *, progress: Progress) -> None:
        self._tokenizers, self._config, self._progress = tokenizers, config, progress

    def build(self, folder: Path, share: SplitPairs, *, keeps_originals: bool) -> None:
        """Write the store of a share; its notes list the pairs dropped for their length."""
        pairs = ((int(row), share.text.tagged_pair(int(row))) for row in share.rows)
        kept = np.zeros(len(share.text), dtype=np.bool_)
        store = token_store_written(
            folder,
            vocabulary_size=self._tokenizers.vocabulary_size,
            source_vocabulary_size=self._tokenizers.source_vocabulary_size,
            keeps_originals=keeps_originals,
        )
        with (
            self._progress.stage(f"encoding {folder.name}", total=len(share.rows), unit="pairs") as stage,
            store as writer,
        ):
            dropped = Dropped()
            for some in in_portions(pairs, lambda row_and_pair: sum(map(len, row_and_pair[1]))):
                kept[self._append(some, share, writer, dropped)] = True
                stage.advance(len(some))
            writer.notes["dropped"] = dropped.as_json()
            writer.notes["pairs_of_corpora"] = np.bincount(share.text.corpus_numbers[kept]).tolist()

    def _append(
        self,
        pairs: Sequence[tuple[int, tuple[str, str]]],
        share: SplitPairs,
        writer: TokenStoreWriter,
        dropped: Dropped,
    ) -> list[int]:
        """Add the pairs whose lengths follow the rules, and return their rows."""
        texts = [segmentable(self._tokenizers.protect_pair(*pair)) for _, pair in pairs]
        sources = self._tokenizers.encode_sources([source for source, _ in texts])
        targets = self._tokenizers.encode_targets([target for _, target in texts])
        kept = []
        for place, (row, (source, target)) in enumerate(pairs):
            lengths = len(sources[place]), len(targets[place])
            fault = length_fault(*lengths, config=self._config, rules=share.rules)
            if fault is None:
                kept.append(place)
            else:
                dropped.add(fault, origin=share.text.origin(row), source=source, target=target)
        rows = [pairs[place][0] for place in kept]
        writer.append(
            [sources[place] for place in kept],
            [targets[place] for place in kept],
            texts=[texts[place] for place in kept],
            originals=[pairs[place][1] for place in kept],
            source_hashes=share.text.source_hashes[rows],
            folded_hashes=share.text.folded_source_hashes[rows],
        )
        return rows
