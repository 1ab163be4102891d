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
# # The attention of any model
#
# `transduce.show_attention(tokens, weights)` shows anybody's tensors on the page of `transduce attention`. In a
# notebook the result is displayed as it is; `to_html()` gives a page in one file.

# %%
import torch

import transduce

tokens = ["the", "dog", "barks"]
weights = torch.rand(2, 4, 3, 3).softmax(dim=-1)  # layers, heads, queries, keys
report = transduce.show_attention(tokens, weights)
assert "<!doctype html>" in report.to_html()

# %% [markdown]
# From one text to another: rows are `tokens`, columns are `keys`.

# %%
cross = torch.rand(2, 4, 3, 4).softmax(dim=-1)
transduce.show_attention(tokens, cross, keys=["der", "Hund", "bellt", "."])

# %% [markdown]
# ## A model of Hugging Face
#
# Models of the package `transformers` return their weights with `output_attentions=True`, a tensor for each layer. The
# model here is small and has random weights, so that nothing is downloaded; replace it by one of yours:
#
#     tokenizer = AutoTokenizer.from_pretrained(folder)
#     model = AutoModel.from_pretrained(folder, attn_implementation="eager")
#     encoded = tokenizer("The dog barks.", return_tensors="pt")
#     tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])

# %%
try:
    from transformers import BertConfig, BertModel
except ImportError:
    shown = None  # pip install transformers, and run this cell again
else:
    config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99)
    model = BertModel(config, add_pooling_layer=False).eval()
    model.set_attn_implementation("eager")  # the fast kernels do not return weights
    outputs = model(torch.tensor([[5, 6, 7]]), output_attentions=True)
    shown = transduce.show_attention(tokens, outputs.attentions)
    assert torch.equal(shown.blocks["attention"].weights_LHQK[1, 2], outputs.attentions[1][0, 2].detach())
shown
