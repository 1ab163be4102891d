"""What loss, perplexity and likelihood all mean by log p(y | x).

    log p(y | x) = Σ_t log softmax(h_t Eᵀ)[y_t]

h_t being the decoder's output at t and E the pre-softmax matrix (3.4). The softmax is taken in float32 whatever
the precision of the network, and in pieces, so that the logits of a whole batch never exist at once.
"""

import torch
from torch import Tensor

TOKENS_AT_ONCE = 1024


def log_softmax(logits: Tensor) -> Tensor:
    """Return log softmax over the last axis, in at least float32."""
    return torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)


def token_log_probabilities(hidden_BTD: Tensor, output_matrix_VD: Tensor, target_BT: Tensor) -> Tensor:
    """Return log p of each label, shape (B, T); the value at a padded position means nothing."""
    hidden_ND, label_N = hidden_BTD.flatten(end_dim=-2), target_BT.flatten()
    chosen = [
        log_softmax(some_ND @ output_matrix_VD.to(some_ND.dtype).T).gather(-1, some_N[:, None])[:, 0]
        for some_ND, some_N in zip(hidden_ND.split(TOKENS_AT_ONCE), label_N.split(TOKENS_AT_ONCE), strict=True)
    ]
    return torch.cat(chosen).view(target_BT.shape)
