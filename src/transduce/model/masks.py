"""Which positions are visible, section 3.2.3 of "Attention Is All You Need".

The decoder's self-attention must not see later positions: "masking out (setting to -inf) all values in the
input of the softmax which correspond to illegal connections". A mask here is named for what `True` means.

Beyond the paper: a batch of sentences of unequal length needs padding, which is visible to no query.
"""

import torch
from torch import Tensor


def visible_tokens(tokens_BS: Tensor, *, padding: int = 0) -> Tensor:
    """Return which positions of a padded batch hold a token, shape (B, S)."""
    return tokens_BS != padding


def as_keys(visible_BK: Tensor) -> Tensor:
    """Return `visible_BK` in the shape attention takes it, (B, 1, 1, K): the same keys for every head and query."""
    return visible_BK[:, None, None, :]


def visible_to_the_left(length: int, *, device: torch.device | None = None) -> Tensor:
    """Return which key each target position may see: itself and those before it, shape (1, 1, T, T)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
