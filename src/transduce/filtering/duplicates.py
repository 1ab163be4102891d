"""Pairs that came before, in a corpus of any size: 8 bytes a pair.

The hashes are kept in sorted runs. A run is merged with the one before it while that one is at most twice as long, so
there are few runs, and each hash is moved a number of times that is logarithmic in their number.
"""

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from transduce.data.sentence_hashes import Hashes, are_known, fold, hash_normalized
from transduce.text.normalization import normalize

_DIGITS = re.compile(r"\d+")


def pair_hashes(pairs: Iterable[tuple[str, str]], *, near: bool) -> Hashes:
    """Return a hash of each pair; `near` ignores case, spaces, punctuation and the values of numbers."""

    def key(text: str) -> str:
        return _DIGITS.sub("0", fold(normalize(text))) if near else normalize(text)

    joined = b"".join(hash_normalized(f"{key(source)}\n{key(target)}") for source, target in pairs)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)


class SeenHashes:
    """The hashes of all pairs that came before."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Add some hashes, and return for each whether it came before, also among those before it in `hashes`."""
        unique, first = np.unique(hashes, return_index=True)
        was_known = np.zeros(len(unique), dtype=np.bool_)
        for run in self._runs:
            was_known |= are_known(unique, run)
        is_repeated = np.ones(len(hashes), dtype=np.bool_)
        is_repeated[first] = was_known
        self._runs.append(unique[~was_known])
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            self._runs[-2:] = [np.sort(np.concatenate(self._runs[-2:]))]
        return is_repeated
