"""The device and precision of forward passes, and the torch calls that select them.

Weights, gradients, optimizer state and reductions are always float32 (float64 if the model is float64). `bf16` rounds
the operands of matrix products. With autograd it does so through autocast; the handwritten gradient of
`backpropagation/` also stores its activations in bf16.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

from transduce.machine import TrainingPrecision


@dataclass(frozen=True)
class Arithmetic:
    """The device and precision of forward passes."""

    device: torch.device
    precision: TrainingPrecision

    def forward_pass(self) -> AbstractContextManager[None]:
        """Return the context in which to run the network forward; the backward pass needs no context."""
        if self.precision == "bf16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return nullcontext()

    @property
    def product_dtype(self) -> torch.dtype | None:
        """The dtype of matrix products in the loss and in Muon; None means the model's own dtype."""
        return torch.bfloat16 if self.precision == "bf16" else None
