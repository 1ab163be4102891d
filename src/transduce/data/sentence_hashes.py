"""Hashes of eight bytes that recognise a sentence without revealing its text.

The hash of a normalised sentence is the same on every machine and in every version: a model keeps the hashes of its
training sources, so that a later evaluation can count the test sentences among them. The chance that any two of ten
million different sentences share a hash is 1 in 400,000.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from transduce.text.normalization import normalize

Hashes = NDArray[np.uint64]


def hash_normalized(text: str) -> bytes:
    """Return the hash of a normalised sentence."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()


def sentence_hashes(texts: Iterable[str]) -> Hashes:
    """Return the hash of each sentence."""
    return np.frombuffer(b"".join(hash_normalized(normalize(text)) for text in texts), dtype="<u8").astype(np.uint64)


def are_known(hashes: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """Return for each hash whether it is in `known`, which is sorted."""
    if len(known) == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.asarray(known[place] == hashes)
