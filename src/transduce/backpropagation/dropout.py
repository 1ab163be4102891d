"""Dropout (5.4) with fast random numbers that depend only on a key.

On a CPU torch draws a random number for every element, which took a twelfth of a step. Here one random 64-bit word
serves four elements. An element is dropped if its 16 bits are below P_drop · 2^16, so P_drop is exact to 8 · 10⁻⁶; the
others are divided by the exact share that is kept.

The words come from a NumPy bit generator, whose stream is guaranteed never to change and is the same on every platform.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_LEVELS = 1 << 16


class DropoutMask:
    """The elements that dropout keeps, and the factor on them."""

    def __init__(self, kept: Tensor, scale: float) -> None:
        self.kept, self.scale = kept, scale

    def added_to(self, residual: Tensor, branch: Tensor) -> Tensor:
        """Return residual + Dropout(branch)."""
        return torch.addcmul(residual, branch, self.kept, value=self.scale)

    def times(self, tensor: Tensor) -> Tensor:
        """Return Dropout(tensor); the same product turns the gradient of Dropout(x) into that of x."""
        return torch.addcmul(tensor.new_zeros(()), tensor, self.kept, value=self.scale)


class KeyedDropout:
    """The dropout of one forward pass: a sequence of masks that depends only on the key."""

    def __init__(self, key: int) -> None:
        self._words = np.random.SFC64(key)

    def keep(self, like: Tensor, *, probability: float) -> DropoutMask | None:
        """Return the next mask, of the shape and dtype of `like`; None if it keeps everything."""
        draw = self.draw(like, probability=probability)
        if draw is None:
            return None
        kept = torch.empty(like.shape, dtype=like.dtype)
        torch.ge(draw.words, draw.threshold, out=kept)
        return DropoutMask(kept, scale=draw.scale)

    def draw(self, like: Tensor, *, probability: float) -> "DropoutDraw | None":
        """Return the random numbers of the next mask, for a kernel that compares them itself."""
        threshold = round(probability * _LEVELS)
        if threshold == 0:
            return None
        words = torch.from_numpy(self._words.random_raw(-(-like.numel() // 4)).view(np.int16))
        return DropoutDraw(
            words[: like.numel()].view(like.shape), threshold - _LEVELS // 2, scale=_LEVELS / (_LEVELS - threshold)
        )


@dataclass(frozen=True)
class DropoutDraw:
    """The random numbers of a mask: it keeps the elements whose word is at least the threshold."""

    words: Tensor
    threshold: int
    scale: float
    """The factor on elements that are kept."""
