"""Where the passes between products are computed: in machine code where it can be made, else by torch's operations.

Which of the two follows from the precision and from what is installed (numba, an extra), so it is the same at every
start. Dropout's decisions are the same in both; numbers may differ by a rounding of bf16.
"""

from functools import cache
from types import ModuleType

import torch

from transduce import machine_code


def kernels_for(dtype: torch.dtype) -> ModuleType | None:
    """Return the compiled kernels, or None if there are none for this precision."""
    return compiled_kernels() if dtype == torch.bfloat16 else None


@cache
def compiled_kernels() -> ModuleType | None:
    """Return the kernels, or None where they cannot be compiled."""
    if not machine_code.can_be_made():
        return None
    from transduce.backpropagation import fused_kernels

    return fused_kernels
