"""All parameters of a model in one piece of memory, and all gradients in another.

The model keeps its parameters by name; here each becomes a view of a part of one long vector, and so does its
gradient. Then zeroing, measuring, scaling, sending and applying a gradient are each one operation, whatever the
number of layers, and ranks add their gradients up without copying them first.

The vector of gradients carries a short tail of counts (tokens, losses, requests to stop) that ranks sum with it.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

_ALIGNMENT = 16  # elements: 64 bytes of float32, a cache line and one AVX-512 register


class FlatParameters:
    """A model's parameters and gradients as two vectors; the model's own tensors become views of them."""

    def __init__(self, model: nn.Module, *, tail: int = 0) -> None:
        named = list(model.named_parameters())
        first = named[0][1]
        self._places: dict[str, tuple[int, torch.Size]] = {}
        length = 0
        for name, parameter in named:
            assert parameter.dtype == first.dtype, f"{name} is {parameter.dtype}, the others {first.dtype}"
            self._places[name] = (length, parameter.shape)
            length += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
        self.values = torch.zeros(length, dtype=first.dtype, device=first.device)
        self.gradients_and_tail = torch.zeros(length + tail, dtype=first.dtype, device=first.device)
        self.gradients, self.tail = self.gradients_and_tail[:length], self.gradients_and_tail[length:]
        with torch.no_grad():
            for (_, parameter), (_, value), (_, gradient) in zip(
                named, self.named_parts(self.values), self.named_parts(self.gradients), strict=True
            ):
                value.copy_(parameter)
                parameter.data = value
                parameter.grad = gradient

    @property
    def count(self) -> int:
        """How many numbers the model learns."""
        return sum(shape.numel() for _, shape in self._places.values())

    def named_parts(self, vector: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Yield each parameter's part of a vector as long as `values`, in the parameter's shape."""
        for name, (start, shape) in self._places.items():
            yield name, vector[start : start + shape.numel()].view(shape)

    def zero_gradients(self) -> None:
        """Forget the last step's gradients and counts."""
        self.gradients_and_tail.zero_()
