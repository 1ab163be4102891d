"""An attention report of anybody's tensors: tokens as texts, and weights of any model.

transduce.show_attention(tokens, weights)                  self-attention: weights by layer, head, query, key
transduce.show_attention(tokens, weights, keys=others)     from `tokens` to `others`
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from transduce.errors import DataError
from transduce.inspection.pair import TokenizedSentence
from transduce.inspection.report import AttentionReport, TranslationSource
from transduce.inspection.tokens import Token
from transduce.networks.attention_block import AttentionBlock


def report_of_weights(
    tokens: Sequence[str],
    weights: Any,  # noqa: ANN401 - any array
    *,
    keys: Sequence[str] | None = None,
) -> AttentionReport:
    """Return a report that shows `weights` between the `tokens` that look and the `keys`, or the tokens themselves.

    `weights` is an array of (layers, heads, queries, keys) or of one layer or head less, or a list with an array for
    each layer, which may have a batch of one in front, as Hugging Face's models give them.
    """
    weights_LHQK = _by_layer(weights)
    _require_fitting(weights_LHQK, queries=len(tokens), keys=len(tokens if keys is None else keys))
    asking, nothing = _sentence(tokens), TokenizedSentence("", ())
    if keys is None:
        source, target, block = asking, nothing, AttentionBlock("source", "source", weights_LHQK)
    else:
        source, target, block = _sentence(keys), asking, AttentionBlock("target", "source", weights_LHQK)
    logs = tuple(0.0 for _ in target.tokens)
    return AttentionReport(
        source=source,
        target=target,
        blocks={"attention": block},
        candidates=[],
        alignment=None,
        translated=TranslationSource("float32", models=1, is_forced=True, log_probabilities=logs),
    )


def _by_layer(weights: Any) -> Tensor:  # noqa: ANN401 - any array
    if isinstance(weights, list | tuple):
        layers = [torch.as_tensor(layer).detach().cpu().float() for layer in weights]
        if not layers:
            raise DataError("There are no weights: the list of layers is empty.")
        if layers[0].dim() >= 3:
            return torch.stack([layer[0] if layer.dim() == 4 and len(layer) == 1 else layer for layer in layers])
    found = torch.as_tensor(weights).detach().cpu().float()
    while found.dim() < 4:
        found = found[None]
    return found


def _require_fitting(weights_LHQK: Tensor, *, queries: int, keys: int) -> None:
    shape = tuple(weights_LHQK.shape)
    if weights_LHQK.dim() != 4 or shape[2:] != (queries, keys):
        raise DataError(
            f"The weights have the shape {shape}, and {queries} queries and {keys} keys need (layers, heads, "
            f"{queries}, {keys}). Give one token for each row, and `keys` if the columns are other tokens."
        )
    if not (weights_LHQK.isfinite().all() and (weights_LHQK >= 0).all() and (weights_LHQK.sum(-1) <= 1.01).all()):
        raise DataError("These are not attention weights: they must be at least 0, and a row must add up to at most 1.")


def _sentence(tokens: Sequence[str]) -> TokenizedSentence:
    found, start = list[Token](), 0
    for place, text in enumerate(tokens):
        found.append(Token(place, text, start, start + len(text), place))
        start += len(text) + 1
    return TokenizedSentence(" ".join(tokens), tuple(found))
