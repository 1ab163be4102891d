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
# # 4. The whole network in 60 lines
#
# Encoder and decoder from parts: attention, a feed-forward network, norms, embeddings, positions. It takes the weights
# of the bundled model by name, and must compute what our network computes. That model puts each norm before its
# sub-layer, as the authors' later code does: x + Sublayer(LayerNorm(x)), with a last norm at the end of each stack.

# %%
import math

import torch
from torch.nn import functional

from transduce.learning.laws import broken_by_causality
from transduce.model_directory import find_model, load_model

network = load_model(find_model("en-de")).network()
weights = {name: parameter.detach() for name, parameter in network.named_parameters()}
D, HEADS, PADDING, START = 256, 4, 0, 2
ENCODER_LAYERS, DECODER_LAYERS = len(network.encoder.layers), len(network.decoder.layers)


# %%
def attention(name, x, memory, visible):
    def by_head(part, inputs):
        projected = inputs @ weights[f"{name}.{part}.weight"].T
        return projected.unflatten(-1, (HEADS, -1)).transpose(-2, -3)

    query, key, value = by_head("W_Q", x), by_head("W_K", memory), by_head("W_V", memory)
    scores = query @ key.mT / math.sqrt(D // HEADS)
    mixed = scores.masked_fill(~visible, -math.inf).softmax(dim=-1) @ value
    return mixed.transpose(-2, -3).flatten(start_dim=-2) @ weights[f"{name}.W_O.weight"].T


def feed_forward(name, x):
    hidden = (x @ weights[f"{name}.W_1.weight"].T + weights[f"{name}.W_1.bias"]).relu()
    return hidden @ weights[f"{name}.W_2.weight"].T + weights[f"{name}.W_2.bias"]


def norm(name, x):
    return functional.layer_norm(x, (D,), weights[f"{name}.weight"], weights[f"{name}.bias"], eps=1e-6)


def add(x, name, sublayer):
    return x + sublayer(norm(f"{name}_residual.norm", x))


def embed(tokens):
    position = torch.arange(tokens.shape[1])[:, None]
    rate = 10_000.0 ** (torch.arange(0, D, 2) / D)
    positions = torch.stack([(position / rate).sin(), (position / rate).cos()], dim=-1).flatten(start_dim=1)
    return weights["embeddings.source_VD"][tokens] * math.sqrt(D) + positions


def encode(source, present):
    x = embed(source)
    for number in range(ENCODER_LAYERS):
        layer = f"encoder.layers.{number}"
        x = add(x, f"{layer}.self_attention", lambda y: attention(f"{layer}.self_attention", y, y, present))
        x = add(x, f"{layer}.feed_forward", lambda y: feed_forward(f"{layer}.feed_forward", y))
    return norm("encoder.final_norm", x)


def decode(inputs, memory, present, is_masked=True):
    x = embed(inputs)
    everywhere = torch.ones(inputs.shape[1], inputs.shape[1], dtype=torch.bool)
    earlier = everywhere.tril() if is_masked else everywhere
    for number in range(DECODER_LAYERS):
        layer = f"decoder.layers.{number}"
        x = add(x, f"{layer}.self_attention", lambda y: attention(f"{layer}.self_attention", y, y, earlier))
        x = add(x, f"{layer}.cross_attention", lambda y: attention(f"{layer}.cross_attention", y, memory, present))
        x = add(x, f"{layer}.feed_forward", lambda y: feed_forward(f"{layer}.feed_forward", y))
    return norm("decoder.final_norm", x)


def hidden_of(source, labels, is_masked=True):
    present = (source != PADDING)[:, None, None, :]
    start = torch.full((len(labels), 1), START)
    return decode(torch.cat([start, labels[:, :-1]], dim=1), encode(source, present), present, is_masked)


# %% [markdown]
# The same numbers as our network, and the laws of any such network:

# %%
torch.manual_seed(1)
source, labels = torch.randint(4, 8000, (2, 9)), torch.randint(4, 8000, (2, 7))
source[1, 6:] = PADDING
with torch.no_grad():
    assert torch.allclose(hidden_of(source, labels), network(source, labels), atol=1e-4)
    assert broken_by_causality(hidden_of, 8000) == []

# %% [markdown]
# ## Take it away: the mask of the decoder
#
# Let every position of the decoder see every other. With all else as it was, one law breaks: each prediction reads its
# answer. In training its loss would be splendid, and it could translate nothing.

# %%
with torch.no_grad():
    broken = broken_by_causality(lambda source, labels: hidden_of(source, labels, is_masked=False), 8000)
assert broken == ["a prediction does not see its answer or what follows"]

# %% [markdown]
# ## Exercises
#
# 1. Leave out the shift: give the decoder `labels` as they are. Which law breaks?
# 2. Leave out `present` in the cross-attention. Which law breaks?
# 3. Leave out the positions. No law breaks; what does the network lose? Translate a sentence with its words shuffled.


# %%
def mine(source, labels):
    return hidden_of(source, labels)  # change this


with torch.no_grad():
    broken = broken_by_causality(mine, 8000)
broken
