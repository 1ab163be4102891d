"""Sentences known by eight bytes: enough to tell that one was seen before, too little to give it away.

The hash is of the normalised sentence and the same everywhere, for ever: a model keeps the hashes of its training
sources, so that an evaluation years later can count the test sentences that were among them. Two different sentences
of ten million share a hash with a chance of 1 in 400,000.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from transduce.text.normalization import normalize

Hashes = NDArray[np.uint64]


def hash_normalized(text: str) -> bytes:
    """Return the hash of a sentence that is normalised already."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()


def sentence_hashes(texts: Iterable[str]) -> Hashes:
    """Return the hash of each sentence."""
    return np.frombuffer(b"".join(hash_normalized(normalize(text)) for text in texts), dtype="<u8").astype(np.uint64)


def are_known(hashes: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """Tell for each hash whether it is among the `known`, which are sorted."""
    if len(known) == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.asarray(known[place] == hashes)
