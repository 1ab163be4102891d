"""Device, threads and precision of a process that computes with torch.

The choice depends only on the features that the machine reports, never on a timing, so it is the same at every start.
`configure_compute` changes the whole process. Only commands, the server's child process and training call it; loading a
model does not.
"""

import contextlib
from collections.abc import Iterator
from typing import Literal

import torch

from transduce.machine import (
    Compute,
    TrainingPrecision,
    available_cores,
    fastest_precision,
    keep_freed_memory,
    processor_flags,
)


def configure_compute(
    *, threads: int | None, precision: TrainingPrecision | Literal["auto"], device: str = "auto"
) -> Compute:
    """Choose the device, threads and precision, and set torch's threads and the allocator for this process."""
    chosen_device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    chosen_threads = threads or available_cores()
    torch.set_num_threads(chosen_threads)
    keep_freed_memory()
    if precision != "auto":
        chosen_precision: TrainingPrecision = precision
    elif chosen_device == "cuda":
        chosen_precision = "bf16" if torch.cuda.is_bf16_supported() else "float32"
    else:
        chosen_precision = fastest_precision(processor_flags())
    return Compute(device=chosen_device, threads=chosen_threads, precision=chosen_precision)


@contextlib.contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch compute with `count` threads inside the block and restore its setting after; None changes nothing."""
    before = torch.get_num_threads()
    if count is None or count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
