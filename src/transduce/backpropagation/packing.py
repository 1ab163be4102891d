"""Packing: the tokens of a batch as one matrix without padding, and the conversion to padded sentences for attention.

Every operation except attention works on single tokens, so the tokens of all sentences form a matrix of N rows. oneDNN
generates code for every new size of a product, which takes as long as a small product. So N is rounded up to a multiple
of 32; the last rows are idle: nothing reads their results, and their gradient is 0. Attention needs separate heads and
padded sentences:

    (N, P·H·E)  →  (P, B·H, L, E)

This is one gather of rows of length E, by an index that all layers share; a second gather converts the results back.
Padding positions read row 0, and nothing reads their results. L is at least 16, since a softmax over fewer keys than a
vector register holds is ten times slower.
"""

import math
from functools import cache, cached_property

import torch
from torch import Tensor

SHORTEST = 16
ROWS_AT_LEAST = 32


class Packing:
    """The positions of the tokens of one side (sources or targets) of a batch."""

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
        """Append zeros for the idle rows to a tensor with one row for each token."""
        return torch.cat([rows, rows.new_zeros(self.rows - self.count, *rows.shape[1:])])

    def to_heads(self, matrix: Tensor, *, parts: int) -> Tensor:
        """Split a matrix of N rows into parts and heads, by sentence: (N, P·H·E) to (P, B·H, L, E)."""
        width = matrix.size(1) // (parts * self.heads)
        by_head = matrix.view(-1, width).index_select(0, self._to_heads(parts))
        return by_head.view(parts, self.sentences * self.heads, self.length, width)

    def from_heads(self, by_head: Tensor) -> Tensor:
        """Join parts and heads into the columns of a matrix of N rows, idle ones 0: (P, B·H, L, E) to (N, P·H·E)."""
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
    """The keys that each query may see: those of its sentence without padding and, if causal, no later ones (3.2.3)."""

    def __init__(self, queries: Packing, keys: Packing, *, is_causal: bool, dtype: torch.dtype) -> None:
        self.queries, self.keys, self.is_causal, self.dtype = queries, keys, is_causal, dtype

    @cached_property
    def hidden(self) -> Tensor:
        """A summand for scores: 0 where a query may see a key, else -inf; shape (B·H, Q, K)."""
        heads, queries, keys = self.queries.heads, self.queries.length, self.keys.length
        if self.is_causal:
            bias_TT = torch.full((queries, keys), -math.inf, dtype=self.dtype).triu_(diagonal=1)
            return bias_TT.repeat(self.queries.sentences * heads, 1, 1)
        is_padding_BL = ~self.keys.is_token_BL
        bias_B11K = torch.zeros(is_padding_BL.shape, dtype=self.dtype).masked_fill_(is_padding_BL, -math.inf)
        return bias_B11K[:, None, None].repeat(1, heads, queries, 1).flatten(end_dim=1)

    @cached_property
    def is_query(self) -> Tensor:
        """A factor for attention weights: 1 for a query, 0 for padding, so that padding has no gradient."""
        is_token_BH = self.queries.is_token_BL[:, None].expand(-1, self.queries.heads, -1)
        return is_token_BH.flatten(end_dim=1)[..., None].to(torch.promote_types(self.dtype, torch.float32))


def tokens_visible(queries: Packing, keys: Packing, *, dtype: torch.dtype) -> Visibility:
    """Let every query see all keys of its sentence, and no padding."""
    return Visibility(queries, keys, is_causal=False, dtype=dtype)


def past_visible(side: Packing, *, dtype: torch.dtype) -> Visibility:
    """Let a position see itself and earlier positions (3.2.3)."""
    return Visibility(side, side, is_causal=True, dtype=dtype)
