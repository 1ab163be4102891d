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
# # 7. Why not recurrence?
#
# The paper's Table 1 compares layers by three counts, for sentences of n positions and vectors of d numbers.
#
# | layer | operations | one after the other | longest path |
# |---|---|---|---|
# | self-attention | n² · d | 1 | 1 |
# | recurrent | n · d² | n | n |
# | convolution of width k | k · n · d² | 1 | log_k n (dilated) |
# | self-attention over r neighbours | r · n · d | 1 | n / r |

# %%
import torch
from torch import nn

n, d, k, r = 50, 512, 3, 10
operations = {
    "self-attention": n * n * d,
    "recurrent": n * d * d,
    "convolution": k * n * d * d,
    "restricted": r * n * d,
}
assert operations == {
    "self-attention": 1_280_000,
    "recurrent": 13_107_200,
    "convolution": 39_321_600,
    "restricted": 256_000,
}

# %% [markdown]
# Self-attention is the cheaper one while n < d:

# %%
assert [length for length in range(1, 2000) if length * length * d > length * d * d][0] == d + 1

# %% [markdown]
# **The path.** A gradient from the last output to the first input passes n steps of a recurrent layer, one of
# attention. We measure its size, by distance, in layers that have learned nothing.

# %%
torch.manual_seed(1)
recurrent = nn.RNN(32, 32, batch_first=True)
attention = nn.MultiheadAttention(32, 4, batch_first=True)


def gradient_by_distance(layer_of, length=40):
    x = torch.randn(64, length, 32, requires_grad=True)
    layer_of(x)[:, -1].square().sum().backward()
    sizes = x.grad.norm(dim=-1).mean(dim=0)
    return {distance: sizes[length - 1 - distance].item() for distance in (1, 5, 20, 39)}


by_recurrence = gradient_by_distance(lambda x: recurrent(x)[0])
by_attention = gradient_by_distance(lambda x: attention(x, x, x)[0])
assert by_recurrence[39] < by_recurrence[1] / 1000
assert by_attention[39] > by_attention[1] / 2
by_recurrence, by_attention

# %% [markdown]
# **One after the other.** In training, attention computes all positions at once. In translation it does not: each word
# waits for the one before it. So the recurrence that is gone in training stays in search, which is why engines for
# translation sometimes bring it back (`model/ssru.py`).

# %% [markdown]
# ## Exercises
#
# 1. Repeat the measurement with `nn.LSTM`. Which part of it keeps gradients alive?
# 2. For which n does a convolution with k = 3 cost less than self-attention?
# 3. Train `--preset lstm` and `--preset demo` on one corpus for one hour each (`transduce train`, `transduce compare`).

# %%
mine = gradient_by_distance(lambda x: recurrent(x)[0])  # change this
mine
