"""What the network computes in: the one place where a precision becomes torch calls.

Weights, their gradients, optimizer and reductions are always float32 (float64 when the model is). `bf16` rounds what
matrix products take: through autocast where torch derives the gradient, and with it all that is kept from the forward
to the backward pass where the gradient is written out.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

from transduce.compute import Precision


@dataclass(frozen=True)
class Arithmetic:
    """How forward passes compute on a device."""

    device: torch.device
    precision: Precision

    def forward_pass(self) -> AbstractContextManager[None]:
        """Return the context in which the network runs forward; its backward pass follows suit by itself."""
        if self.precision == "bf16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return nullcontext()

    @property
    def product_dtype(self) -> torch.dtype | None:
        """What the loss multiplies in; None leaves the model's own precision."""
        return torch.bfloat16 if self.precision == "bf16" else None
