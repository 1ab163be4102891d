"""The last stage of preparation: text to token ids, in a stream, into a store."""

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
from transduce.text.placeholders import protect_pair
from transduce.text.tokenizer import EOS, Tokenizer

Rows = NDArray[np.int64]
"""Indices of pairs in a `CorpusText`."""


@dataclass(frozen=True)
class Share:
    """The pairs that one split is made of, and the rules by which their lengths are judged."""

    text: CorpusText
    rows: Rows
    rules: frozenset[Rule]
    is_held_out: bool = False


def segmentable(source: str, target: str) -> tuple[str, str]:
    """Return a pair as it is cut into pieces: normalised, and what stands on both sides to be copied as symbols."""
    protected = protect_pair(source, target)
    return normalize(protected.source), normalize(protected.target)


def lines_to_learn_from(share: Share) -> Iterator[str]:
    """Yield both sides of a share's pairs, ready to be segmented."""
    for row in share.rows:
        yield from segmentable(*share.text.pair(int(row)))


class Encoder:
    """Builds token stores with one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, config: DataConfig, *, progress: Progress) -> None:
        self._tokenizer, self._config, self._progress = tokenizer, config, progress

    def build(self, folder: Path, share: Share, *, keeps_originals: bool) -> None:
        """Write the store of a share; what is dropped for its length is noted in the store."""
        size = self._tokenizer.vocabulary_size
        pairs = ((int(row), share.text.pair(int(row))) for row in share.rows)
        with (
            self._progress.stage(f"encoding {folder.name}", total=len(share.rows), unit="pairs") as stage,
            token_store_written(folder, vocabulary_size=size, keeps_originals=keeps_originals) as writer,
        ):
            dropped = Dropped()
            for some in in_portions(pairs, lambda row_and_pair: sum(map(len, row_and_pair[1]))):
                self._append(some, share, writer, dropped)
                stage.advance(len(some))
            writer.notes["dropped"] = dropped.as_json()

    def _append(
        self, pairs: Sequence[tuple[int, tuple[str, str]]], share: Share, writer: TokenStoreWriter, dropped: Dropped
    ) -> None:
        texts = [segmentable(*pair) for _, pair in pairs]
        sources, targets = (
            [[*ids, EOS] for ids in self._tokenizer.encode_all([text[side] for text in texts])] for side in range(2)
        )
        kept = []
        for place, (row, (source, target)) in enumerate(pairs):
            lengths = len(sources[place]), len(targets[place])
            fault = length_fault(*lengths, config=self._config, rules=share.rules)
            if fault is None:
                kept.append(place)
            else:
                dropped.add(fault, origin=share.text.origin(row), source=source, target=target)
        writer.append(
            [sources[place] for place in kept],
            [targets[place] for place in kept],
            texts=[texts[place] for place in kept],
            originals=[pairs[place][1] for place in kept],
            source_hashes=share.text.source_hashes[[pairs[place][0] for place in kept]],
        )
