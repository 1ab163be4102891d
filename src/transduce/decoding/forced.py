"""log p(y | x) of given pairs by any model that search works with, one position at a time.

For an output of the search, the sum over its tokens equals the log-probability that the search reports.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transduce.data.padding import batches_by_length, pad_ids
from transduce.errors import DataError
from transduce.networks.stepwise import Stepwise

TOKENS_AT_ONCE = 4096


def forced_log_probabilities(
    stepper: Stepwise[Any], pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> list[list[float]]:
    """Return, for each pair of ids, log p of each target token given the tokens before it."""
    found: list[list[float]] = [[] for _ in pairs]
    for number, (source, target) in enumerate(pairs, start=1):
        limit = stepper.longest_target(len(source))
        if limit is not None and max(len(source), len(target)) > limit:
            raise DataError(
                f"Pair {number} has {max(len(source), len(target)):,} pieces, but this model learned positions for "
                f"{limit:,}. Leave the pair out, or train a model with more model.learned_positions or with sinusoidal "
                "positions."
            )
    lengths = [max(map(len, pair)) for pair in pairs]
    for places in batches_by_length(lengths, tokens_at_once=TOKENS_AT_ONCE):
        state = stepper.start(pad_ids([pairs[place][0] for place in places], padding=stepper.source_padding))
        target_BT = pad_ids([pairs[place][1] for place in places], padding=stepper.tokens.padding)
        tokens_B1 = np.full((len(places), 1), stepper.tokens.start, dtype=np.int64)
        for position, following_B in enumerate(target_BT.T):
            log_p_B = stepper.step(state, tokens_B1)[np.arange(len(places)), 0, following_B].tolist()
            for place, log_p in zip(places, log_p_B, strict=True):
                if position < len(pairs[place][1]):
                    found[place].append(log_p)
            tokens_B1 = np.ascontiguousarray(following_B[:, None])
    return found
