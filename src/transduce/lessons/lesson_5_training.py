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
# # 5. Training
#
# A small network learns the corpus that comes with the package. The loss is −log p of each next token; Adam follows its
# gradient; the learning rate rises for some steps and then falls (equation 3).
#
#     lrate = d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)

# %%
from transduce.learning.laws import broken_by_schedule


def rate(step, d_model=512, warmup=4000):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


assert broken_by_schedule(rate) == []

# %% [markdown]
# ## Take it away: the warm-up
#
# The first steps are then the largest, while Adam knows nothing of the size of gradients yet.


# %%
def without_warmup(step, d_model=512):
    return d_model**-0.5 * step**-0.5


broken = broken_by_schedule(without_warmup)
assert "it is highest at the end of the warm-up" in broken
broken

# %% [markdown]
# ## Learn
#
# 300 steps of a network with two layers. This takes a minute or two.

# %%
import tempfile
from pathlib import Path

import transduce
from transduce.demo.corpus import corpus

folder = Path(tempfile.mkdtemp())
splits = corpus(pairs=3000, held_out=100)
for name, pairs in (("train", splits.train), ("valid", splits.valid)):
    (folder / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")


def learn(name, **settings):
    return transduce.train(
        str(folder / "train.tsv"),
        valid=str(folder / "valid.tsv"),
        output=folder / name,
        preset="demo",
        steps=300,
        threads=1,
        settings={
            "training.time": None,
            "training.decay_steps": 300,
            "training.warmup_steps": 60,
            "training.validate_every": 150,
            "model.vocabulary_size": 1000,
            **settings,
        },
    )


result = learn("whole")
assert result.step == 300
assert result.validation is not None
result.validation

# %% [markdown]
# It has begun to write German:

# %%
translator = transduce.load(folder / "whole", threads=1)
english, german = splits.valid[0]
english, translator.translate(english).text, german

# %% [markdown]
# ## Exercises
#
# 1. Give `mine` a warm-up that rises and then stays. Which law breaks?
# 2. Let it fall in a straight line after the warm-up, or like a cosine. Which law breaks?
# 3. Train once with `learn("no_warmup", **{"training.warmup_steps": 1})`. Compare the loss.
# 4. Train once with `"model.scores": "unscaled"`. What do 300 steps tell, and what not?


# %%
def mine(step):
    return rate(step)  # change this


broken_by_schedule(mine)
