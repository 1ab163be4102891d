"""Random choices that repeat: a seed gives the same choices on every platform and Python version.

Only `random.Random.random` is used, the one method whose sequence Python promises to keep. The algorithms of `choice`,
`sample` and `shuffle` have changed between versions.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A stream of random choices; streams with the same seed and different names are independent."""

    def __init__(self, seed: int, *, stream: str) -> None:
        key = hashlib.sha256(f"{seed} {stream}".encode()).digest()
        self._random = random.Random(int.from_bytes(key[:8], "big")).random

    def holds(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random() < probability

    def below(self, count: int) -> int:
        """Return a whole number from 0 to `count` - 1."""
        return int(self._random() * count)

    def between(self, first: int, last: int) -> int:
        """Return a whole number from `first` to `last`, both included."""
        return first + int(self._random() * (last - first + 1))

    def one(self, options: Sequence[T]) -> T:
        """Return one of the options; an option that is listed twice is twice as likely."""
        return options[int(self._random() * len(options))]
