"""Comparison of the float32 pass in a report with the model that translated: bfloat16, int8, or an ensemble.

Both compute the log-probability of the same tokens. The model that translated does so token by token, as in the search,
so the comparison works for every model that search works with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.networks.stepwise import Stepwise


@dataclass(frozen=True)
class TranslationSource:
    """The origin of a translation: precision, number of models, and the log-probability of each target token."""

    precision: str
    models: int
    is_forced: bool
    log_probabilities: tuple[float, ...]


def stepped_log_probabilities(
    stepper: Stepwise[Any], source: Sequence[int], target: Sequence[int]
) -> tuple[float, ...]:
    """Return log p of each token of `target`, fed to the stepper one by one after the start token."""
    state = stepper.start(np.array([source], dtype=np.int64))
    found = []
    for token, following in zip([stepper.tokens.start, *target], target, strict=False):
        found.append(float(stepper.step(state, np.array([[token]]))[0, 0, following]))
    return tuple(found)
