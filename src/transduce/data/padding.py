"""Rows of token ids as one padded array, and batches that need little padding; without torch, for search."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pad_ids(rows: Sequence[Sequence[int] | NDArray[Any]], *, padding: int) -> NDArray[np.int64]:
    """Return rows of ids as one array, filled up with `padding` at the end to the longest."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), padding, dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded


def batches_by_length(lengths: Sequence[int], *, tokens_at_once: int) -> Iterator[list[int]]:
    """Yield the indices of rows in batches of similar length, the longest rows first.

    A batch has at most `tokens_at_once` positions, padding included; a longer row is a batch of its own.
    """
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens_at_once:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
