"""A batch as one long row of tokens, and how attention finds its sentences in it.

Everything but attention treats each token by itself, so padding need not be computed there: tokens of all sentences
follow each other in a matrix of N rows. oneDNN prepares code for every new size of a product, which takes as long as a
small product itself, so N is the next multiple of 32: the last rows are idle, and what they compute is read by nobody
and has gradient 0. Attention wants its heads side by side and its sentences padded,

    (N, P·H·E)  →  (P, B·H, L, E)

which is one gather of rows of length E, by an index that serves all layers; and another gather brings results back.
Padding reads row 0, and what it computes is hidden from everyone. L is at least 16, since the softmax over fewer keys
than a vector register holds is ten times slower.
"""

import math
from functools import cache, cached_property

import torch
from torch import Tensor

SHORTEST = 16
ROWS_AT_LEAST = 32


class Packing:
    """One side of a batch: which tokens there are, and where."""

    def __init__(self, is_token_BL: Tensor, *, heads: int) -> None:
        self.heads, self.sentences = heads, is_token_BL.size(0)
        sentence, position = is_token_BL.nonzero(as_tuple=True)
        self.count = position.numel()
        self.rows = -(-self.count // ROWS_AT_LEAST) * ROWS_AT_LEAST
        self.length = max(SHORTEST, is_token_BL.size(1))
        slot = sentence * self.length + position
        self.position_N, self.slot_N = self.with_idle_rows(position), self.with_idle_rows(slot)
        self.row_BL = torch.zeros(self.sentences, self.length, dtype=torch.int64)
        self.row_BL.view(-1)[slot] = torch.arange(self.count)
        self.is_token_BL = torch.zeros(self.sentences, self.length, dtype=torch.bool)
        self.is_token_BL.view(-1)[slot] = True
        self.length_B = is_token_BL.sum(dim=1)
        self._to_heads = cache(self._index_to_heads)
        self._from_heads = cache(self._index_from_heads)

    def with_idle_rows(self, rows: Tensor) -> Tensor:
        """Return one value, or one row of values, for each token, followed by zeros for the idle rows."""
        return torch.cat([rows, rows.new_zeros(self.rows - self.count, *rows.shape[1:])])

    def to_heads(self, matrix: Tensor, *, parts: int) -> Tensor:
        """Return `parts` matrices of N rows, joined in columns, by head: shape (P, B·H, L, E)."""
        width = matrix.size(1) // (parts * self.heads)
        by_head = matrix.view(-1, width).index_select(0, self._to_heads(parts))
        return by_head.view(parts, self.sentences * self.heads, self.length, width)

    def from_heads(self, by_head: Tensor) -> Tensor:
        """Return the rows of the tokens, the parts and heads joined in columns, idle ones 0: shape (N, P·H·E)."""
        parts, width = by_head.size(0), by_head.size(-1)
        rows = by_head.view(-1, width).index_select(0, self._from_heads(parts))
        matrix = rows.view(self.rows, parts * self.heads * width)
        matrix[self.count :] = 0.0
        return matrix

    def _index_to_heads(self, parts: int) -> Tensor:
        part_P111 = torch.arange(parts)[:, None, None, None]
        head_H1 = torch.arange(self.heads)[:, None]
        return ((self.row_BL[:, None, :] * parts + part_P111) * self.heads + head_H1).flatten()

    def _index_from_heads(self, parts: int) -> Tensor:
        sentence_N11, position_N11 = (self.slot_N // self.length)[:, None, None], self.position_N[:, None, None]
        part_P1, head_H = torch.arange(parts)[:, None], torch.arange(self.heads)
        row = (part_P1 * self.sentences + sentence_N11) * self.heads + head_H
        return (row * self.length + position_N11).flatten()


class Visibility:
    """What each query of each head may see: its sentence's keys, or of these no later ones (3.2.3), and no padding."""

    def __init__(self, queries: Packing, keys: Packing, *, is_causal: bool, dtype: torch.dtype) -> None:
        self.queries, self.keys, self.is_causal, self.dtype = queries, keys, is_causal, dtype

    @cached_property
    def hidden(self) -> Tensor:
        """0 where a query may see a key, -inf where not, to be added to scores: shape (B·H, Q, K)."""
        heads, queries, keys = self.queries.heads, self.queries.length, self.keys.length
        if self.is_causal:
            bias_TT = torch.full((queries, keys), -math.inf, dtype=self.dtype).triu_(diagonal=1)
            return bias_TT.repeat(self.queries.sentences * heads, 1, 1)
        is_padding_BL = ~self.keys.is_token_BL
        bias_B11K = torch.zeros(is_padding_BL.shape, dtype=self.dtype).masked_fill_(is_padding_BL, -math.inf)
        return bias_B11K[:, None, None].repeat(1, heads, queries, 1).flatten(end_dim=1)

    @cached_property
    def is_query(self) -> Tensor:
        """1 for a query and 0 for padding, whose weights are therefore 0, and with them its gradients."""
        is_token_BH = self.queries.is_token_BL[:, None].expand(-1, self.queries.heads, -1)
        return is_token_BH.flatten(end_dim=1)[..., None].to(torch.promote_types(self.dtype, torch.float32))


def tokens_visible(queries: Packing, keys: Packing, *, dtype: torch.dtype) -> Visibility:
    """Let every query see its sentence's keys, and no padding."""
    return Visibility(queries, keys, is_causal=False, dtype=dtype)


def past_visible(side: Packing, *, dtype: torch.dtype) -> Visibility:
    """Let a position see itself and those before it (3.2.3)."""
    return Visibility(side, side, is_causal=True, dtype=dtype)
