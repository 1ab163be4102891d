"""Which formula wrote a stored table of positions; a table that no formula explains is a learned one."""

import numpy as np

from transduce.tensor_file import Array

_CLOSE = 2e-3
"""Programs compute angles in float32 and may store float16; other formulas differ by 0.07 at position 50."""


def formula_of(table_TD: Array) -> tuple[str, int] | None:
    """Return the value of `positions` and the first position, or None."""
    length, d_model = table_TD.shape
    if not np.any(table_TD):
        return "none", 0
    if d_model % 2:
        return None
    for first in (0, 1, 2):
        for kind, expected_TD in _formulas(first, length, d_model).items():
            if np.allclose(table_TD, expected_TD, rtol=0.0, atol=_CLOSE):
                return kind, first
    return None


def _formulas(first: int, length: int, d_model: int) -> dict[str, Array]:
    """Return the tables that `model/positional_encoding.py` makes; this room does without torch."""
    position_T1, index = np.arange(first, first + length)[:, None], np.arange(d_model // 2)
    angle_TI = position_T1 / 10_000.0 ** (2 * index / d_model)
    exact_TI = position_T1 / 10_000.0 ** (index / max(d_model // 2 - 1, 1))
    return {
        "sinusoidal": np.stack([np.sin(angle_TI), np.cos(angle_TI)], axis=-1).reshape(length, d_model),
        "sinusoidal_halves": np.concatenate([np.sin(angle_TI), np.cos(angle_TI)], axis=-1),
        "concatenated": np.concatenate([np.sin(exact_TI), np.cos(exact_TI)], axis=-1),
    }
