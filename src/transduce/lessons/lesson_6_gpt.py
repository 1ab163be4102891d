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
# # 6. Build a GPT
#
# From a table of letter pairs to attention, in four small steps. The loss is the mean of −log p(next character), on
# text that no step learns from. `docs/build_gpt.md` goes on to layers and a whole GPT.

# %%
import math

import torch
from torch import nn
from torch.nn import functional

from transduce.demo.corpus import corpus
from transduce.learning.laws import broken_by_prediction
from transduce.model.attention import attend
from transduce.model.masks import visible_to_the_left

torch.manual_seed(1)
text = "\n".join(english for english, _ in corpus(pairs=4000).train)
characters = sorted(set(text))
ids = torch.tensor([characters.index(character) for character in text])
learned_from, held_out = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
LENGTH, V = 32, len(characters)
blocks = held_out[: 200 * LENGTH + 1]
read_held_out, next_held_out = blocks[:-1].view(-1, LENGTH), blocks[1:].view(-1, LENGTH)


def loss_of(logits, following):
    return functional.cross_entropy(logits.flatten(end_dim=1), following.flatten())


knowing_nothing = math.log(V)

# %% [markdown]
# **Count pairs.** How often does each character follow each other one?

# %%
counts = torch.ones(V, V)
counts.index_put_((learned_from[:-1], learned_from[1:]), torch.tensor(1.0), accumulate=True)
table = (counts / counts.sum(dim=1, keepdim=True)).log()
counted = loss_of(table[read_held_out], next_held_out).item()
assert counted < knowing_nothing - 1.5

# %% [markdown]
# **Learn with attention.** Each position asks, each earlier position offers, and the mask hides what comes later.


# %%
class OneHead(nn.Module):
    def __init__(self, width=64, has_mask=True):
        super().__init__()
        self.characters, self.places = nn.Embedding(V, width), nn.Embedding(LENGTH, width)
        self.W_Q, self.W_K, self.W_V = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.output = nn.Linear(width, V)
        self.visible = visible_to_the_left(LENGTH) if has_mask else torch.ones(1, 1, LENGTH, LENGTH).bool()

    def forward(self, read):
        x = self.characters(read) + self.places.weight
        query, key, value = (W(x)[:, None] for W in (self.W_Q, self.W_K, self.W_V))
        return self.output(x + attend(query, key, value, visible_BHQK=self.visible)[:, 0])


def learn(model, steps=300, peak=1e-2):
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99))
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = peak * min(1, step / 40) * (1 - step / steps)
        places = torch.randint(len(learned_from) - LENGTH, (16, 1)) + torch.arange(LENGTH)
        optimizer.zero_grad()
        loss_of(model(learned_from[places]), learned_from[places + 1]).backward()
        optimizer.step()
    with torch.no_grad():
        return loss_of(model(read_held_out), next_held_out).item()


attending = learn(OneHead())
assert attending < counted
counted, attending

# %% [markdown]
# It keeps three laws, with any weights. The table breaks two of them: it looks at one character only.

# %%
with torch.no_grad():
    assert broken_by_prediction(OneHead(), V, LENGTH) == []
assert broken_by_prediction(lambda read: table[read], V, LENGTH) == [
    "every earlier token counts",
    "the order of earlier tokens counts",
]

# %% [markdown]
# ## Take it away: the mask
#
# The loss falls far below what is possible, because each position reads its answer. It can write nothing.

# %%
cheating = learn(OneHead(has_mask=False))
assert cheating < attending - 0.5
with torch.no_grad():
    assert broken_by_prediction(OneHead(has_mask=False), V, LENGTH) == ["a prediction does not see what follows"]
cheating

# %% [markdown]
# ## Exercises
#
# 1. Take the places away (`x = self.characters(read)`). Which law breaks, and how much does the loss rise?
# 2. Let each position see itself and the one before it only (`.triu(-1)`). Which laws break?
# 3. Give it four heads (`MultiHeadAttention`). What do you gain?
# 4. Write 200 characters: draw from the softmax of the last row, append, repeat.


# %%
class Mine(OneHead):
    def forward(self, read):
        return super().forward(read)  # change this


with torch.no_grad():
    broken = broken_by_prediction(Mine(), V, LENGTH)
broken
