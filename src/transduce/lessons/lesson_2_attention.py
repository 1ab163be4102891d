# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 2. Attention
#
#     Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V                                  (equation 1)
#
# A query asks, keys answer how well they fit, values are what is fetched.

# %%
import math

import torch
from torch import tensor

from transduce.learning.laws import broken_by_attention
from transduce.model.attention import softmax


def attend(query, key, value, visible=None):
    scores = query @ key.T / math.sqrt(key.shape[-1])
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    return softmax(scores) @ value


assert broken_by_attention(attend) == []

# %% [markdown]
# ## Two words, worked out
#
# The numbers that many notes begin with. Some of these notes print Q Kᵀ = [[1.4, 1.58], [1.04, 1.18]]; do the sums.

# %%
X = tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]])  # "Hello", "World"
W_Q = tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [0.1, 0.2, 0.3]])
W_K = tensor([[0.2, 0.3, 0.4], [0.5, 0.6, 0.7], [0.8, 0.9, 0.1], [0.2, 0.3, 0.4]])
W_V = tensor([[0.3, 0.4, 0.5], [0.6, 0.7, 0.8], [0.9, 0.1, 0.2], [0.3, 0.4, 0.5]])
Q, K, V = X @ W_Q, X @ W_K, X @ W_V
assert torch.allclose(Q @ K.T, tensor([[2.60, 2.78], [1.79, 1.97]]))
assert torch.allclose(attend(Q, K, V), tensor([[1.042213, 0.815574, 1.015574]] * 2), atol=1e-6)

# %% [markdown]
# Both rows are equal, which is a coincidence: the difference of the two keys is at a right angle to that of the two
# queries.

# %%
assert torch.allclose((K[0] - K[1]) @ (Q[0] - Q[1]), tensor(0.0), atol=1e-6)

# %% [markdown]
# ## Take it away: the scale
#
# For random components a score has variance d_k. Without the scale wide keys saturate the softmax.


# %%
def without_scale(query, key, value, visible=None):
    return attend(query * math.sqrt(key.shape[-1]), key, value, visible)


assert "wide keys do not saturate the softmax" in broken_by_attention(without_scale)

# %% [markdown]
# ## Take it away: the mask, and V


# %%
def without_mask(query, key, value, visible=None):
    return attend(query, key, value)


assert broken_by_attention(without_mask) == ["a hidden key changes nothing"]
weights = softmax(Q @ K.T / math.sqrt(3))
assert weights.shape == (2, 2)  # softmax(Q Kᵀ / √d_k) alone: a weight for each word, not yet an output
assert (weights @ V).shape == (2, 3)

# %% [markdown]
# ## Exercises
#
# 1. Mask by setting weights to 0 after the softmax. Which law breaks, and why?
# 2. Divide by √n for n keys in place of √d_k. Which law breaks?
# 3. Add a number to all scores of a row. Does any law break?


# %%
def mine(query, key, value, visible=None):
    return attend(query, key, value, visible)  # change this


broken_by_attention(mine)
