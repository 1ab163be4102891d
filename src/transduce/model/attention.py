"""Scaled dot-product and multi-head attention, sections 3.2.1 and 3.2.2 of "Attention Is All You Need".

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                                  (equation 1)
    MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O,  head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

One matrix W_Q holds the h matrices W_i^Q as blocks of rows, so that one product makes all heads; W_K and W_V likewise.

Departure: a query that may see no key gets zeros, where the equation is undefined.
Departures by name (`ModelConfig.scores`, `attention_bias`, `attention_dropout`, `neighbourhood`): the scores that 3.2.1
compares with, biases on the projections as in the authors' first code, dropout on the weights as in 6.3, and the
restricted self-attention of section 4.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.model.config import ModelConfig
from transduce.model.cost import Window, uses_blocks
from transduce.model.neighbourhood import cut_into_blocks, in_window, joined_blocks
from transduce.networks.attention_sublayer import AttentionSublayer
from transduce.networks.initialization import glorot_linear


def softmax(scores: Tensor) -> Tensor:
    """Return e^{x_i} / Σ_j e^{x_j} over the last axis, computed so that no exponent overflows.

    Subtracting the row's maximum does not change the result, since softmax(x + c) = softmax(x), and makes every
    exponent at most 0. A row of -inf only has no softmax: the result is NaN, and the caller must mask it.
    """
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def attention_weights(scores_BHQK: Tensor, *, visible_BHQK: Tensor | None) -> Tensor:
    """Return how much each query attends to each key, shape (B, H, Q, K); a row sums to 1 or is 0."""
    if visible_BHQK is None:
        return scores_BHQK.softmax(dim=-1)
    scores_BHQK = scores_BHQK.masked_fill(~visible_BHQK, -math.inf)
    # A row with no visible key is all -inf and its softmax NaN. Zero only the hidden entries:
    # nan_to_num would also hide a model that has truly diverged.
    return scores_BHQK.softmax(dim=-1).masked_fill(~visible_BHQK, 0.0)


def attend(
    query_BHQE: Tensor,
    key_BHKE: Tensor,
    value_BHKG: Tensor,
    *,
    visible_BHQK: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return Attention(Q, K, V) for every head, shape (B, H, Q, G): equation 1 as it is written."""
    scale = 1.0 / math.sqrt(query_BHQE.size(-1)) if scale is None else scale
    scores_BHQK = query_BHQE @ key_BHKE.mT * scale
    weights_BHQK = attention_weights(scores_BHQK, visible_BHQK=visible_BHQK)
    if dropout:
        weights_BHQK = functional.dropout(weights_BHQK, dropout)
    return weights_BHQK @ value_BHKG


def attend_fast(
    query_BHQE: Tensor,
    key_BHKE: Tensor,
    value_BHKG: Tensor,
    *,
    visible_BHQK: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Return what `attend` returns, through torch's fused kernel, which never holds the Q x K weights."""
    mixed_BHQG = functional.scaled_dot_product_attention(
        query_BHQE, key_BHKE, value_BHKG, attn_mask=visible_BHQK, scale=scale, dropout_p=dropout
    )
    if visible_BHQK is None:
        return mixed_BHQG
    # For a row with no visible key, the result of the fused kernels depends on version and device: set it to zero.
    return mixed_BHQG.masked_fill(~visible_BHQK.any(dim=-1, keepdim=True), 0.0)


class MultiHeadAttention(AttentionSublayer):
    """Section 3.2.2: h heads, each attending in its own projection of the model's width."""

    def __init__(self, config: ModelConfig, *, window: Window | None = None) -> None:
        """With a window, each query sees only the keys in it; for self-attention only (see `neighbourhood.py`)."""
        super().__init__()
        self.heads, self.window = config.heads, window
        self.scores = config.scores
        scales = {"scaled": 1.0 / math.sqrt(config.query_width), "unscaled": 1.0, "additive": 1.0}
        self.scale = scales[config.scores]  # of a dot product of query and key
        self.dropout = config.attention_dropout
        bias = config.attention_bias
        self.W_Q = glorot_linear(config.d_model, config.heads * config.query_width, bias=bias)
        self.W_K = glorot_linear(config.d_model, config.heads * config.query_width, bias=bias)
        self.W_V = glorot_linear(config.d_model, config.heads * config.value_width, bias=bias)
        self.W_O = glorot_linear(config.heads * config.value_width, config.d_model, bias=bias)
        if self.scores == "additive":
            self.v_HE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(config.heads, config.query_width)))

    def forward(self, query_BQD: Tensor, memory_BKD: Tensor, *, visible_BHQK: Tensor | None = None) -> Tensor:
        """Return MultiHead(Q, K, V) of the queries over `memory_BKD`, shape (B, Q, D)."""
        query_BHQE, key_BHKE, value_BHKG = self.project(query_BQD, memory_BKD)
        return self.combine(query_BHQE, key_BHKE, value_BHKG, visible_BHQK=visible_BHQK)

    def project(self, query_BQD: Tensor, memory_BKD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values by head. In self-attention one fused product makes all three."""
        if query_BQD is memory_BKD:
            joined = self._joined(query_BQD, self.W_Q, self.W_K, self.W_V)
            return self._by_head(joined[0]), self._by_head(joined[1]), self._by_head(joined[2])
        return self.project_query(query_BQD), *self.project_memory(memory_BKD)

    def project_query(self, query_BQD: Tensor) -> Tensor:
        """Return the queries of every head, shape (B, H, Q, E)."""
        return self._by_head(self.W_Q(query_BQD))

    def project_memory(self, memory_BKD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys (B, H, K, E) and values (B, H, K, G) of every head."""
        key_BKA, value_BKA = self._joined(memory_BKD, self.W_K, self.W_V)
        return self._by_head(key_BKA), self._by_head(value_BKA)

    def combine(
        self, query_BHQE: Tensor, key_BHKE: Tensor, value_BHKG: Tensor, *, visible_BHQK: Tensor | None
    ) -> Tensor:
        """Attend in every head, concatenate the heads and project with W_O, shape (B, Q, D)."""
        length = query_BHQE.size(2)
        if self.window is not None and key_BHKE.size(2) == length and uses_blocks(self.window, length):
            keys_visible = visible_BHQK if self.window[1] else None  # a window to the left hides later keys itself
            *blocks, shown_RHLM = cut_into_blocks(
                query_BHQE, key_BHKE, value_BHKG, visible_BHQK=keys_visible, window=self.window
            )
            mixed_RHLG = self._mixed(*blocks, visible_BHQK=shown_RHLM)
            mixed_BHQG = joined_blocks(mixed_RHLG, sentences=query_BHQE.size(0), length=length)
        else:
            visible_BHQK = self._in_window(query_BHQE, key_BHKE, visible_BHQK)
            mixed_BHQG = self._mixed(query_BHQE, key_BHKE, value_BHKG, visible_BHQK=visible_BHQK)
        mixed: Tensor = self.W_O(mixed_BHQG.transpose(1, 2).flatten(start_dim=2))
        return mixed

    def _mixed(
        self, query_BHQE: Tensor, key_BHKE: Tensor, value_BHKG: Tensor, *, visible_BHQK: Tensor | None
    ) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        if self.scores == "additive":
            weights_BHQK = attention_weights(self._scores(query_BHQE, key_BHKE), visible_BHQK=visible_BHQK)
            return functional.dropout(weights_BHQK, dropout) @ value_BHKG
        # On a CPU the fused kernel's backward pass in bfloat16 took 3 to 7 times as long as the equation written
        # out, for sentences of 16 to 64 tokens, and in float32 equally long; on a GPU the kernel is far faster.
        attend_here = attend if query_BHQE.device.type == "cpu" else attend_fast
        return attend_here(
            query_BHQE, key_BHKE, value_BHKG, visible_BHQK=visible_BHQK, scale=self.scale, dropout=dropout
        )

    def _in_window(self, query_BHQE: Tensor, key_BHKE: Tensor, visible_BHQK: Tensor | None) -> Tensor | None:
        """Return which keys are visible and in the window; `visible_BHQK` itself if the window holds all keys."""
        queries, keys = query_BHQE.size(2), key_BHKE.size(2)
        if self.window is None or (self.window[0] >= keys - 1 and (not self.window[1] or self.window[1] >= keys - 1)):
            return visible_BHQK
        near_BHQK = in_window(queries, keys, window=self.window, device=query_BHQE.device)
        return near_BHQK if visible_BHQK is None else near_BHQK & visible_BHQK

    def weights(self, query_BHQE: Tensor, key_BHKE: Tensor, *, visible_BHQK: Tensor | None) -> Tensor:
        """Return the attention weights of every head for any kind of scores, without the fused kernel."""
        visible_BHQK = self._in_window(query_BHQE, key_BHKE, visible_BHQK)
        return attention_weights(self._scores(query_BHQE, key_BHKE), visible_BHQK=visible_BHQK)

    def _scores(self, query_BHQE: Tensor, key_BHKE: Tensor) -> Tensor:
        if self.scores != "additive":
            return query_BHQE @ key_BHKE.mT * self.scale
        # Bahdanau's compatibility: one hidden layer, v · tanh(q + k).
        hidden_BHQKE = (query_BHQE[:, :, :, None] + key_BHKE[:, :, None]).tanh()
        return (hidden_BHQKE * self.v_HE[:, None, None]).sum(dim=-1)

    def _by_head(self, joined_BKA: Tensor) -> Tensor:
        if joined_BKA.dim() != 3:
            raise ValueError("A layer takes (batch, position, d_model): give a sentence of its own as x[None].")
        by_head_BKHE: Tensor = joined_BKA.unflatten(-1, (self.heads, -1))
        return by_head_BKHE.transpose(1, 2)

    @staticmethod
    def _joined(inputs_BKD: Tensor, *projections: nn.Linear) -> tuple[Tensor, ...]:
        weight = torch.cat(tuple(projection.weight for projection in projections))
        biases: list[Tensor] = [projection.bias for projection in projections if projection.bias is not None]
        joined = functional.linear(inputs_BKD, weight, torch.cat(biases) if biases else None)
        return torch.split(joined, [projection.out_features for projection in projections], dim=-1)
