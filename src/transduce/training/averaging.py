"""Checkpoint averaging, section 6.1 of "Attention Is All You Need".

"We used a single model obtained by averaging the last 5 checkpoints": each weight is the arithmetic mean of that weight
in the checkpoints. Sums are in float64; besides them, memory holds one tensor of one checkpoint at a time.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transduce.errors import RunError
from transduce.training.checkpoint import MODEL_FILE, Checkpoints


@dataclass(frozen=True)
class Averaged:
    """The mean of the weights of some checkpoints, and the steps of those checkpoints."""

    weights: dict[str, Tensor]
    steps: tuple[int, ...]


def average_last(run: Path, *, last: int) -> Averaged:
    """Return the mean of the newest `last` checkpoints of a run directory.

    It averages only checkpoints saved at the configured interval, and the newest one of any kind. So stopping and
    resuming a run does not change the average.
    """
    folder = run / "checkpoints"
    checkpoints = Checkpoints(folder).all()
    if not checkpoints:
        raise RunError(f"{folder} holds no checkpoint to average. Train first: transduce train --output {run}")
    newest = checkpoints[-1]
    chosen = [checkpoint for checkpoint in checkpoints if checkpoint == newest or checkpoint.state().is_regular][-last:]
    for checkpoint in chosen:
        fault = checkpoint.fault()
        if fault is not None:
            raise RunError(
                f"The checkpoint of step {checkpoint.step:,} cannot be averaged: {fault}. "
                f"Delete {checkpoint.folder} to average the others."
            )
    try:
        weights = _mean_of_files([checkpoint.folder / MODEL_FILE for checkpoint in chosen])
    except (OSError, SafetensorError) as fault:
        raise RunError(
            f"The checkpoints in {folder} cannot be read ({fault}). Check the disk, then run the same command again."
        ) from fault
    return Averaged(weights=weights, steps=tuple(checkpoint.step for checkpoint in chosen))


def _mean_of_files(files: list[Path]) -> dict[str, Tensor]:
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    for file in files:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - safe_open is not iterable
                tensor = tensors.get_tensor(name)
                dtypes[name] = tensor.dtype
                sums[name] = sums[name].add_(tensor) if name in sums else tensor.double()
    return {name: total.div_(len(files)).to(dtypes[name]) for name, total in sums.items()}
