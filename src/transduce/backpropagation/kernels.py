"""The choice between compiled kernels and torch's operations for the work between matrix products.

It depends on the precision and on whether numba (an optional dependency) is installed, so every start of a run makes
the same choice. Dropout masks are the same with both; numbers may differ by a rounding of bf16.
"""

from functools import cache
from types import ModuleType

import torch

from transduce import machine_code


def kernels_for(dtype: torch.dtype) -> ModuleType | None:
    """Return the compiled kernels for this precision, or None if there are none."""
    return compiled_kernels() if dtype == torch.bfloat16 else None


@cache
def compiled_kernels() -> ModuleType | None:
    """Return the kernels, or None if they cannot be compiled here."""
    if not machine_code.can_be_made():
        return None
    from transduce.backpropagation import fused_kernels

    return fused_kernels
