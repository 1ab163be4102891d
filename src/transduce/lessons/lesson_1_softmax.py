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
# # 1. Softmax
#
# We have scores, any real numbers. We want weights: all positive, together 1, larger where the score is larger.
#
#     softmax(x)_i = e^{x_i} / Σ_j e^{x_j}

# %%
import torch

from transduce.learning.laws import broken_by_softmax


def softmax(scores):
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


softmax(torch.tensor([1.0, 0.0, 0.5]))  # by hand: 2.718, 1 and 1.649, divided by 5.367

# %% [markdown]
# **First property: it is a distribution.** Every exponential is positive, and the row is divided by its sum.
#
# **Second property: only differences count.** softmax(x + c) = softmax(x), because e^{x + c} = e^c · e^x, and e^c
# cancels. That is why we may subtract the largest score first: then no exponent is above 0, and nothing overflows.

# %%
row = torch.tensor([1.0, 0.0, 0.5])
assert torch.allclose(softmax(row).sum(), torch.tensor(1.0))
assert torch.allclose(softmax(row + 100), softmax(row))
assert broken_by_softmax(softmax) == []

# %% [markdown]
# ## Take it away: no subtraction
#
# The equation as it is printed overflows for scores that a network does have. Which law breaks?


# %%
def printed_softmax(scores):
    return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)


assert broken_by_softmax(printed_softmax) == ["large scores do not overflow"]

# %% [markdown]
# ## Exercises
#
# 1. Replace e^x by x². Predict which laws break, then run the cell.
# 2. Divide by the largest exponential in place of the sum. Which law breaks?
# 3. Write the logarithm of the softmax so that it is right for scores of ±10,000.


# %%
def mine(scores):
    return softmax(scores)  # change this


broken_by_softmax(mine)
