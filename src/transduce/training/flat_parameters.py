"""All parameters of a model in one vector, and all gradients in another.

Each parameter becomes a view of a part of the vector, and so does its gradient. So zeroing, measuring, scaling, summing
over ranks and applying a gradient are one operation each, whatever the number of layers, and need no copies.

A short tail of counts (tokens, losses, requests to stop) follows the gradients, and the ranks sum both together.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

_ALIGNMENT = 16  # elements: 64 bytes of float32, a cache line and one AVX-512 register


class FlatParameters:
    """A model's parameters and gradients as two vectors; the model's tensors become views of them."""

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
        """The number of parameters, alignment not counted."""
        return sum(shape.numel() for _, shape in self._places.values())

    def named_parts(self, vector: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Yield the name of each parameter and its part of `vector`, in its shape; `vector` is as long as `values`."""
        for name, (start, shape) in self._places.items():
            yield name, vector[start : start + shape.numel()].view(shape)

    def zero_gradients(self) -> None:
        """Set the gradients and the tail to zero."""
        self.gradients_and_tail.zero_()


def copy_by_name(tensors: Mapping[str, Tensor], *, into: Mapping[str, Tensor]) -> bool:
    """Copy tensors into those of the same names; copy nothing and return False if names or shapes differ."""
    if tensors.keys() != into.keys() or any(tensors[name].shape != into[name].shape for name in into):
        return False
    for name, tensor in into.items():
        tensor.copy_(tensors[name])
    return True
