"""The last stage of preparation: text to token ids, in a stream, into a store."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transduce.data.cleaning import Dropped, Rule, length_fault
from transduce.data.config import DataConfig
from transduce.data.corpus_text import CorpusText
from transduce.data.token_store import TokenStoreWriter, token_store_written
from transduce.progress import Progress
from transduce.text.normalization import normalize
from transduce.text.placeholders import protect_pair
from transduce.text.tokenizer import EOS, Tokenizer

_AT_A_TIME = 4096

Rows = NDArray[np.int64]
"""Indices of pairs in a `CorpusText`."""


def segmentable(source: str, target: str) -> tuple[str, str]:
    """Return a pair as it is cut into pieces: normalised, and what stands on both sides to be copied as symbols."""
    protected = protect_pair(source, target)
    return normalize(protected.source), normalize(protected.target)


def lines_to_learn_from(text: CorpusText, rows: Rows) -> Iterator[str]:
    """Yield both sides of the given pairs, ready to be segmented."""
    for row in rows.tolist():
        yield from segmentable(*text.pair(row))


class Encoder:
    """Builds token stores with one tokenizer."""

    def __init__(self, tokenizer: Tokenizer, config: DataConfig, *, progress: Progress) -> None:
        self._tokenizer, self._config, self._progress = tokenizer, config, progress

    def build(
        self, folder: Path, text: CorpusText, rows: Rows, *, rules: frozenset[Rule], keeps_originals: bool
    ) -> None:
        """Write the store of the given pairs; what is dropped for its length is noted in the store."""
        size = self._tokenizer.vocabulary_size
        with (
            self._progress.stage(f"encoding {folder.name}", total=len(rows), unit="pairs") as stage,
            token_store_written(folder, vocabulary_size=size, keeps_originals=keeps_originals) as writer,
        ):
            dropped = Dropped()
            for start in range(0, len(rows), _AT_A_TIME):
                some = rows[start : start + _AT_A_TIME]
                self._append(some, text, writer, rules=rules, dropped=dropped)
                stage.advance(len(some))
            writer.notes["dropped"] = dropped.as_json()

    def _append(
        self, rows: Rows, text: CorpusText, writer: TokenStoreWriter, *, rules: frozenset[Rule], dropped: Dropped
    ) -> None:
        originals = [text.pair(row) for row in rows.tolist()]
        texts = [segmentable(*pair) for pair in originals]
        sources, targets = (
            [[*ids, EOS] for ids in self._tokenizer.encode_all([pair[side] for pair in texts])] for side in range(2)
        )
        kept = []
        for place, row in enumerate(rows.tolist()):
            fault = length_fault(len(sources[place]), len(targets[place]), config=self._config, rules=rules)
            if fault is None:
                kept.append(place)
            else:
                source, target = originals[place]
                dropped.add(fault, origin=text.origin(row), source=source, target=target)
        writer.append(
            [sources[place] for place in kept],
            [targets[place] for place in kept],
            texts=[texts[place] for place in kept],
            originals=[originals[place] for place in kept],
            source_hashes=text.source_hashes[rows[kept]],
        )
