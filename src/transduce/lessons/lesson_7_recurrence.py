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

from transduce.learning.laws import broken_by_costs


def operations(n, d, k, r):
    return {
        "self-attention": n * n * d,
        "recurrent": n * d * d,
        "convolution": k * n * d * d,
        "restricted": r * n * d,
    }


assert broken_by_costs(operations) == []
assert operations(n=50, d=512, k=3, r=10) == {
    "self-attention": 1_280_000,
    "recurrent": 13_107_200,
    "convolution": 39_321_600,
    "restricted": 256_000,
}

# %% [markdown]
# Self-attention is the cheaper one while n < d:

# %%
cheaper = [
    n for n in range(1, 2000) if operations(n, 512, 3, 10)["self-attention"] < operations(n, 512, 3, 10)["recurrent"]
]
assert cheaper == list(range(1, 512))

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
# 1. A self-attention layer also multiplies with W^Q, W^K, W^V and W^O: add 4 · n · d². Which laws break, and what does
#    that say of Table 1?
# 2. Let every position see the k before it only. To which layer of the table is it equal?
# 3. Repeat the measurement of gradients with `nn.LSTM`. Which part of it keeps them alive?
# 4. Train `--preset lstm` and `--preset demo` on one corpus for one hour each (`transduce train`, `transduce compare`).


# %%
def mine(n, d, k, r):
    return {**operations(n, d, k, r), "self-attention": n * n * d}  # change this


broken_by_costs(mine)
