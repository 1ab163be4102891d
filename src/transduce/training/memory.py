"""A check before the first step that training fits into memory.

An operating system that overcommits memory does not refuse an allocation; it kills the process later, without a
message. So `probe` first runs two small parts of the largest batch, counts the bytes that their backward passes keep,
and extrapolates to the whole batch. If the estimate fits into the available memory, it runs the whole batch once.
"""

from pathlib import Path

import torch

from transduce.data.batch import Batch
from transduce.errors import TrainingError
from transduce.machine import is_out_of_memory, memory
from transduce.training.batches import sample_rows
from transduce.training.chunked_loss import LOGITS_AT_ONCE
from transduce.training.step import Stepper

_BYTES_PER_LOGIT = 8
_BACKWARD_AND_ALLOCATOR = 1.5  # measured on tiny and small models: processes grew by 1.3 to 1.6 times the bytes kept
_FEWEST_SENTENCES = 32  # a smaller batch runs without an estimate


def probe(stepper: Stepper, batch: Batch) -> None:
    """Run the largest batch once without a step of the optimizer; raise TrainingError if memory does not suffice."""
    rows, positions = batch.target_BT.size(0), batch.source_BS.numel() + batch.target_BT.numel()
    available = available_memory()
    stepper.model.train()
    try:
        if available is not None and rows >= _FEWEST_SENTENCES:
            needed = estimated_need(stepper, batch)
            if needed > available:
                raise TrainingError(
                    f"The largest batch, {rows} sentences of {positions:,} positions, needs about "
                    f"{needed / 1e9:.1f} GB and {available / 1e9:.1f} GB are free. {_ADVICE}"
                )
        stepper.accumulate(batch)
    except (RuntimeError, MemoryError) as fault:
        if not is_out_of_memory(fault):
            raise
        raise TrainingError(
            f"Memory ran out on the largest batch, {rows} sentences of {positions:,} positions. {_ADVICE}"
        ) from fault
    finally:
        stepper.parameters.zero_gradients()


_ADVICE = (
    "Halve training.micro_batch_tokens (if it is not set: set it to half of training.batch_tokens). The steps stay the "
    "same and need less memory. Or choose a smaller model, or a smaller data.max_length."
)


def estimated_need(stepper: Stepper, batch: Batch) -> int:
    """Return about how many bytes the batch needs, extrapolated linearly from two small parts of it."""
    rows = batch.target_BT.size(0)
    stepper.gradient.refresh()
    few, more = rows // 16, rows // 8
    device = stepper.arithmetic.device
    with stepper.kept_statistics():
        of_few, of_more = (
            stepper.gradient.kept_for_backward(sample_rows(batch, part).to(device)) for part in (few, more)
        )
    per_row = (of_more - of_few) / (more - few)
    kept = of_few + per_row * (rows - few)
    return int(_BACKWARD_AND_ALLOCATOR * kept) + LOGITS_AT_ONCE * _BYTES_PER_LOGIT


def available_memory() -> int | None:
    """Return the bytes of memory still free, within the limit of a container; None if that is unknown."""
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[0])
    free, limit = memory()[1], _container_limit()
    return free if free is None or limit is None else min(free, limit)


def _container_limit() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text(encoding="ascii"))
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        statistics = (folder / "memory.stat").read_text(encoding="ascii").split()
    except (OSError, ValueError):  # there is no such file, or it says "max": no limit
        return None
    reclaimable = int(statistics[statistics.index("inactive_file") + 1])
    return limit - used + reclaimable
