"""Pullbacks: functions that compute a backward pass from the tensors that their forward pass kept."""

from collections.abc import Callable
from types import FunctionType, MethodType

from torch import Tensor

Pullback = Callable[[Tensor], Tensor]
"""Maps the gradient of the outputs to the gradient of the inputs, and adds to the parameters' gradients."""


def kept_bytes(pullback: Callable[..., object]) -> int:
    """Return the bytes of all tensors that a pullback and the pullbacks inside it hold, each counted once."""
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
