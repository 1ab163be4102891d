"""Marian's binary shortlists, `lex….s2t.bin`: which targets each source piece may become.

    u64 magic, checksum, first, best, offsets n = V + 1, ids m · n × u64 · m × u32

The candidates of source id s are ids[offset[s] : offset[s + 1]]; the ids below `first` are candidates of all.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transduce.data.shortlist import Shortlist
from transduce.errors import ModelError
from transduce.importing.byte_reader import ByteReader
from transduce.importing.foreign_model import bytes_of
from transduce.text.tokenizer_pair import TokenizerPair

_MAGIC = 0xF11A48D5013417F5
_LARGEST_FILE = 1 << 30
_MOST_NUMBERS = 32 << 20


def read_marian_shortlist(path: Path, pieces: Sequence[str], pair: TokenizerPair) -> Shortlist:
    """Return the shortlist for a pair of tokenizers, whose source pieces may be numbered otherwise than `pieces`."""
    reader = ByteReader(bytes_of(path, largest=_LARGEST_FILE))
    try:
        magic, _, first, _, count, total = (reader.number("Q") for _ in range(6))
        if magic != _MAGIC or reader.left != 8 * count + 4 * total or count != len(pieces) + 1:
            raise ValueError
        offsets = np.frombuffer(reader.take(8 * count), "<u8").astype(np.int64)
        ids = np.frombuffer(reader.take(4 * total), "<u4").astype(np.int64)
        size, widths = pair.vocabulary_size, np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != total or (widths < 0).any() or (ids >= size).any() or first > size:
            raise ValueError
        longest = int(widths.max(initial=0))
        if longest * len(pieces) > _MOST_NUMBERS:
            raise ValueError
    except ValueError:
        raise ModelError(f"{path} is damaged, or is no shortlist for {len(pieces):,} source pieces.") from None
    special = pair.target.special
    numbers = {pair.source.piece(token): token for token in range(pair.source.vocabulary_size)}
    rows = np.repeat([numbers[piece] for piece in pieces], widths)
    candidates_VK = np.full((pair.source.vocabulary_size, longest), special.padding, dtype=np.int32)
    candidates_VK[rows, np.arange(total) - np.repeat(offsets[:-1], widths)] = ids
    return Shortlist(
        common_C=np.setdiff1d(np.arange(first), special.ids).astype(np.int32),
        candidates_VK=candidates_VK,
        special=special,
        copies_sources=pair.has_one_vocabulary,
    )
