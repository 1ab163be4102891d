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
# # 3. Heads
#
#     MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O,   head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
#
# One head has one set of weights. Several narrow heads look at several things at once, at about the cost of a wide one.

# %%
import torch

import transduce
from transduce.inspection.ablation import with_ablation
from transduce.learning.laws import broken_by_heads
from transduce.model import ModelConfig
from transduce.model.attention import MultiHeadAttention, attend

torch.manual_seed(1)
layer = MultiHeadAttention(ModelConfig(vocabulary_size=8, d_model=12, heads=3))
x = torch.randn(1, 5, 12)
query, key, value = layer.project(x, x)
assert query.shape == (1, 3, 5, 4)  # batch, heads, positions, d_k = 12 / 3
heads = attend(query, key, value)
by_hand = torch.cat([heads[:, 0], heads[:, 1], heads[:, 2]], dim=-1) @ layer.W_O.weight.T
assert torch.allclose(by_hand, layer(x, x), atol=1e-6)

# %% [markdown]
# ## What heads do in a trained model
#
# The bundled model translates "I cannot find my keys." We take each head out in turn and see how much less probable its
# own translation becomes.

# %%
translator = transduce.load("en-de", precision="float32", threads=1)
report = translator.attention("I cannot find my keys.")
network = translator.models[0].read_again().network()
report = with_ablation(report, network, translator.tokenizers.target)
whole = sum(token.log_probability for token in report.target.tokens)
changes = {
    (kind, layer + 1, head + 1): sum(entry.log_probabilities) - whole
    for kind, layers in report.without.items()
    for layer, heads in enumerate(layers)
    for head, entry in enumerate(heads)
}
assert len(changes) == 4 * (len(network.encoder.layers) + 2 * len(network.decoder.layers))  # 4 heads in each place
strongest = min(changes, key=changes.get)
strongest, changes[strongest]

# %% [markdown]
# It is one of those that look at the source. Without it, another token is the most probable at some place.

# %%
kind, layer_number, head_number = strongest
entry = report.without[kind][layer_number - 1][head_number - 1]
names = [token.text for token in report.target.tokens]
instead = [own[0].text for own in entry.candidates]
changed = [(name, other) for name, other in zip(names, instead, strict=True) if name != other]
assert kind == "cross"
assert changed
changed

# %% [markdown]
# Most heads change little, at least in this sentence.

# %%
small = sum(abs(change) < 0.1 for change in changes.values())
assert small > len(changes) / 3
small, len(changes)

# %% [markdown]
# ## Exercises
#
# 1. Leave out the split: one head as wide as all of them. Which laws break?
# 2. Give each head √d_model in place of √d_k. Which law breaks?
# 3. Leave out W^O. Which laws break?
# 4. Find the head that matters most for "Where is the nearest pharmacy?". Is it the same?


# %%
def mine(x, W_Q, W_K, W_V, W_O, heads):
    query, key, value = ((x @ W).unflatten(-1, (heads, -1)).transpose(0, 1) for W in (W_Q, W_K, W_V))  # change this
    return attend(query, key, value).transpose(0, 1).flatten(start_dim=1) @ W_O


broken_by_heads(mine)
