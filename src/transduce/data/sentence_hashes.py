"""Hashes of eight bytes by which a sentence is recognised without revealing its text.

The hash of a normalised sentence is the same on every machine and in every version: a model keeps the hashes of its
training sources, so that a later evaluation can count the test sentences among them. The chance that any two of ten
million different sentences share a hash is 1 in 400,000.

A model keeps the hash of each source without case, spaces and punctuation, so that "guten tag" counts as trained on if
"Guten Tag!" was. Models of earlier versions keep the hash of the sentence as it is.
"""

import hashlib
import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from transduce.text.normalization import normalize

Hashes = NDArray[np.uint64]


class _Folding(dict[int, int | None]):
    """For `str.translate`: punctuation, spaces and invisible format characters of Unicode are left out."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code)).startswith(("P", "Z", "Cf")) else code
        return self[code]


_FOLDING = _Folding()


def hash_normalized(text: str) -> bytes:
    """Return the hash of a normalised sentence."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()


def fold(normalized: str) -> str:
    """Return a normalised sentence without case, spaces and punctuation; a sentence of nothing else stays unchanged."""
    return normalized.casefold().translate(_FOLDING) or normalized


def hashes_after_folding(texts: Iterable[str]) -> Hashes:
    """Return the hash of each sentence after folding."""
    return sentence_hashes(fold(normalize(text)) for text in texts)


def sentence_hashes(texts: Iterable[str]) -> Hashes:
    """Return the hash of each sentence."""
    return np.frombuffer(b"".join(hash_normalized(normalize(text)) for text in texts), dtype="<u8").astype(np.uint64)


def are_known(hashes: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """Return for each hash whether it is in `known`, which must be sorted."""
    if len(known) == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.asarray(known[place] == hashes)
