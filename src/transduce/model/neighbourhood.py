"""Restricted self-attention, the last row of Table 1 of "Attention Is All You Need".

"Self-attention could be restricted to considering only a neighborhood of size r in the input sequence centered around
the respective output position." Departure by name (`ModelConfig.neighbourhood`): position i of the encoder sees j with
|i - j| ≤ ⌊r/2⌋. The paper says nothing of the decoder; here i sees i - r + 1 to i. Attention over the encoder stays
full.

To save time, the positions are cut into blocks as long as the reach b of the window, and the queries of a
block see only its own keys and those of the blocks beside it: about 3 b n products instead of n². Path length: ⌈(n - 1)
/ ⌊r/2⌋⌉ layers join both ends.

Shapes: C counts blocks, L the positions of one, M the keys that a block sees.
"""

import torch
from torch import Tensor
from torch.nn import functional

from transduce.model.cost import Window, block_sizes


def in_window(queries: int, keys: int, *, window: Window, device: torch.device | None = None) -> Tensor:
    """Return which keys are in the window of each query, shape (1, 1, Q, K); the last query and key are aligned."""
    position_Q = torch.arange(keys - queries, keys, device=device)
    distance_QK = torch.arange(keys, device=device) - position_Q[:, None]
    before, after = window
    return ((distance_QK >= -before) & (distance_QK <= after))[None, None]


def cut_into_blocks(
    query_BHQE: Tensor, key_BHQE: Tensor, value_BHQG: Tensor, *, visible_BHQK: Tensor | None, window: Window
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return queries (B C, H, L, E), keys and values (B C, H, M, …) of each block, and what its queries may see.

    `visible_BHQK` is the same for all queries, shape (B, 1, 1, K); without it, only the window hides keys.
    """
    (before, after), length = window, query_BHQE.size(2)
    size, seen = block_sizes(window)
    count = -(-length // size)
    query_BHTE = functional.pad(query_BHQE, (0, 0, 0, count * size - length))

    def beside(x_BHTE: Tensor) -> Tensor:
        padded_BHTE = functional.pad(x_BHTE, (0, 0, size, (count - 2) * size + seen - length))
        return padded_BHTE.unfold(2, seen, size).permute(0, 2, 1, 4, 3).flatten(end_dim=1)

    place_CL1 = torch.arange(count * size, device=query_BHQE.device).view(count, size, 1)
    place_C1M = torch.arange(-size, seen - size, device=query_BHQE.device) + place_CL1[:, :1]
    distance_CLM = place_C1M - place_CL1
    shown_CLM = (distance_CLM >= -before) & (distance_CLM <= after) & (place_C1M >= 0) & (place_C1M < length)
    shown_BCLM = shown_CLM[None].expand(query_BHQE.size(0), -1, -1, -1)
    if visible_BHQK is not None:
        visible_BK = visible_BHQK[:, 0, 0].expand(query_BHQE.size(0), -1)
        shown_BCLM = shown_BCLM & visible_BK[:, place_C1M.clamp(0, length - 1)]
    blocks_RHLE = query_BHTE.unflatten(2, (count, size)).transpose(1, 2).flatten(end_dim=1)
    return blocks_RHLE, beside(key_BHQE), beside(value_BHQG), shown_BCLM.flatten(end_dim=1)[:, None]


def joined_blocks(mixed_RHLG: Tensor, *, sentences: int, length: int) -> Tensor:
    """Return the outputs of all blocks of each sentence side by side, shape (B, H, Q, G)."""
    mixed_BHTG: Tensor = mixed_RHLG.unflatten(0, (sentences, -1)).transpose(1, 2).flatten(2, 3)
    return mixed_BHTG[:, :, :length]
