"""Dropout, section 5.4, with keyed random numbers that cost little.

torch draws one number at a time for a mask on a processor, which took a twelfth of a step. Here one random word of 64
bits decides four elements, 16 bits each: an element is dropped when its 16 bits are below P_drop · 2^16, so P_drop is
met to 8 · 10⁻⁶, and what is kept is divided by exactly the share that is kept.

The words are those of a NumPy bit generator, which promises them for ever and on every platform.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_LEVELS = 1 << 16


class Kept:
    """Which elements dropout has kept, and its product with whatever has their shape."""

    def __init__(self, kept: Tensor, scale: float) -> None:
        self.kept, self.scale = kept, scale

    def added_to(self, residual: Tensor, branch: Tensor) -> Tensor:
        """Return residual + Dropout(branch)."""
        return torch.addcmul(residual, branch, self.kept, value=self.scale)

    def times(self, tensor: Tensor) -> Tensor:
        """Return Dropout(tensor), or its gradient: both are the same product."""
        return torch.addcmul(tensor.new_zeros(()), tensor, self.kept, value=self.scale)


class KeyedDropout:
    """The dropout of one pass: a sequence of masks that follows from the key alone."""

    def __init__(self, key: int) -> None:
        self._words = np.random.SFC64(key)

    def keep(self, like: Tensor, *, probability: float) -> Kept | None:
        """Return what to keep of a tensor like this one; None if that is everything."""
        decisions = self.decide(like, probability=probability)
        if decisions is None:
            return None
        kept = torch.empty(like.shape, dtype=like.dtype)
        torch.ge(decisions.words, decisions.threshold, out=kept)
        return Kept(kept, scale=decisions.scale)

    def decide(self, like: Tensor, *, probability: float) -> "Decisions | None":
        """Return the same as random numbers, not yet compared."""
        threshold = round(probability * _LEVELS)
        if threshold == 0:
            return None
        words = torch.from_numpy(self._words.random_raw(-(-like.numel() // 4)).view(np.int16))
        return Decisions(
            words[: like.numel()].view(like.shape), threshold - _LEVELS // 2, scale=_LEVELS / (_LEVELS - threshold)
        )


@dataclass(frozen=True)
class Decisions:
    """What dropout keeps: elements whose word is not below the threshold."""

    words: Tensor
    threshold: int
    scale: float
    """By which to multiply what is kept."""
