"""Rows of token ids side by side in one array; needs no torch, as search does not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pad_ids(rows: Sequence[Sequence[int] | NDArray[Any]], *, padding: int) -> NDArray[np.int64]:
    """Return rows of ids as one array, filled up with `padding` at the end to the longest."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), padding, dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded
