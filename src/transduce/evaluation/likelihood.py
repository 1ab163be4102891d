"""log p(y | x) of given pairs, token by token, by teacher forcing: one forward pass over each batch.

For an output of the search, the sum over its tokens equals the log-probability that the search reports.
"""

from collections.abc import Sequence

import torch

from transduce.data.batch import pad_rows
from transduce.data.padding import batches_by_length
from transduce.errors import DataError
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.networks.network import Network

EncodedPair = tuple[Sequence[int], Sequence[int]]
"""Token ids of source and target with their end tokens."""

TOKENS_AT_ONCE = 4096


@torch.inference_mode()
def log_probabilities_of_pairs(
    model: Network,
    pairs: Sequence[EncodedPair],
    *,
    tokens_at_once: int = TOKENS_AT_ONCE,
) -> list[list[float]]:
    """Return, for each pair, log p of each target token given the tokens before it; the end token is the last."""
    _require_positions_for(model, pairs)
    device, padding = model.output.matrix_VD.device, model.tokens.padding
    found: list[list[float]] = [[] for _ in pairs]
    lengths = [max(map(len, pair)) for pair in pairs]
    for places in batches_by_length(lengths, tokens_at_once=tokens_at_once):
        source_BS = pad_rows([pairs[place][0] for place in places], padding=padding).to(device)
        target_BT = pad_rows([pairs[place][1] for place in places], padding=padding).to(device)
        log_p_BT = token_log_probabilities(model(source_BS, target_BT), model.output, target_BT)
        for place, row in zip(places, log_p_BT.tolist(), strict=True):
            found[place] = row[: len(pairs[place][1])]
    return found


def _require_positions_for(model: Network, pairs: Sequence[EncodedPair]) -> None:
    limit = model.longest_sentence
    for number, (source, target) in enumerate(pairs, start=1):
        longest = max(len(source), len(target))
        if limit is not None and longest > limit:
            raise DataError(
                f"Pair {number} has {longest:,} pieces, but this model learned positions for {limit:,}. "
                "Leave the pair out, or train a model with more model.learned_positions or with sinusoidal positions."
            )
        bound = model.longest_target(len(source))
        if bound is not None and len(target) > bound:
            raise DataError(
                f"Pair {number} has {len(target):,} target pieces, but for a source of {len(source):,} pieces this "
                f"model can write {bound:,}. Leave the pair out."
            )
