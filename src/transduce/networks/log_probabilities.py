"""log p(y | x), for loss, perplexity and likelihood.

    log p(y | x) = Σ_t log softmax(logits(h_t))[y_t]

h_t is the hidden vector at t. The softmax is taken in float32 or better, and over some tokens at a time, so that the
logits of a whole batch never exist at once.
"""

import torch
from torch import Tensor

from transduce.networks.output import Output

TOKENS_AT_ONCE = 1024


def log_softmax(logits: Tensor) -> Tensor:
    """Return log softmax over the last axis, in at least float32."""
    return torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)


def token_log_probabilities(hidden_BTD: Tensor, output: Output, target_BT: Tensor) -> Tensor:
    """Return log p of each label, shape (B, T); the value at a padded position has no meaning."""
    hidden_ND, label_N = hidden_BTD.flatten(end_dim=-2), target_BT.flatten()
    chosen = [
        log_softmax(output.logits(some_ND)).gather(-1, some_N[:, None])[:, 0]
        for some_ND, some_N in zip(hidden_ND.split(TOKENS_AT_ONCE), label_N.split(TOKENS_AT_ONCE), strict=True)
    ]
    return torch.cat(chosen).view(target_BT.shape)
