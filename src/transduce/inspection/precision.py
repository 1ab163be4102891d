"""Comparison of the float32 pass in a report with the model that translated: bfloat16, int8, or an ensemble.

Both compute the log-probability of the same tokens. The model that translated does so token by token, as in the search,
so the comparison works for every model that search works with.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TranslationSource:
    """The origin of a translation: precision, number of models, and the log-probability of each target token."""

    precision: str
    models: int
    is_forced: bool
    log_probabilities: tuple[float, ...]
