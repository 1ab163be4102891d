"""How a backward pass is carried: a function that holds what its forward pass has left for it."""

from collections.abc import Callable
from types import FunctionType, MethodType

from torch import Tensor

Pullback = Callable[[Tensor], Tensor]
"""From the gradient with respect to outputs to the gradient with respect to inputs."""


def kept_bytes(pullback: Callable[..., object]) -> int:
    """Return the bytes that a backward pass keeps alive: all tensors that its functions hold, each once."""
    return sum(_storages(pullback, {}).values())


def _storages(held: object, found: dict[int, int]) -> dict[int, int]:
    if isinstance(held, Tensor):
        storage = held.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
    elif isinstance(held, list | tuple):
        for part in held:
            _storages(part, found)
    elif isinstance(held, FunctionType):
        for cell in held.__closure__ or ():
            _storages(cell.cell_contents, found)
    elif isinstance(held, MethodType):
        _storages(held.__func__, found)
    return found
