"""Checkpoints on the disk, from which a run resumes.

    checkpoints/step-00001000/   model.safetensors       the weights, float32
                                 optimizer.safetensors   Adam's two running means of every weight
                                 state.json              step, epoch, best validation and settings of the run
                                 manifest.json           SHA-256 of each file

A folder of that name is complete: it is written under a temporary name, flushed and renamed. A run resumes from the
newest checkpoint whose manifest verifies; it warns about a damaged one and renames it. Pruning renames a folder before
it deletes the files, so a kill in between leaves no incomplete checkpoint.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from transduce.errors import RunError
from transduce.files import directory_written_atomically, fsync_directory, manifest_fault, remove_leftovers
from transduce.progress import Progress, Silent
from transduce.training.state import CheckpointState

MODEL_FILE, OPTIMIZER_FILE, STATE_FILE = "model.safetensors", "optimizer.safetensors", "state.json"
_NAME = re.compile(r"step-(\d{8,})")
_PRUNED = ".pruned"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on the disk."""

    folder: Path
    step: int

    def state(self) -> CheckpointState:
        """Read the state of the run at this checkpoint."""
        try:
            return CheckpointState.model_validate_json((self.folder / STATE_FILE).read_bytes())
        except (OSError, ValidationError) as fault:
            raise RunError(
                f"{self.folder / STATE_FILE} is damaged, or another version of transduce wrote it "
                f"({_first_line(fault)}). Use the version that wrote it, or begin a new run."
            ) from fault

    def model(self) -> dict[str, Tensor]:
        """Read the weights by name."""
        return _read_tensors(self.folder / MODEL_FILE)

    def optimizer(self) -> dict[str, Tensor]:
        """Read Adam's running means by name."""
        return _read_tensors(self.folder / OPTIMIZER_FILE)

    def fault(self) -> str | None:
        """Return what is wrong with the files, or None if each matches the manifest."""
        return manifest_fault(self.folder)


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, *, progress: Progress | None = None) -> None:
        self.folder = folder
        self.progress = progress or Silent()

    def all(self) -> list[Checkpoint]:
        """Return every checkpoint, oldest first, without verifying them."""
        if not self.folder.is_dir():
            return []
        named = ((_NAME.fullmatch(entry.name), entry) for entry in self.folder.iterdir() if entry.is_dir())
        found = [Checkpoint(entry, int(match.group(1))) for match, entry in named if match]
        return sorted(found, key=lambda checkpoint: checkpoint.step)

    def newest_whole(self) -> Checkpoint | None:
        """Return the newest checkpoint that verifies, or None; change nothing on the disk."""
        return next((one for one in reversed(self.all()) if one.fault() is None), None)

    def latest(self) -> Checkpoint | None:
        """Return the newest checkpoint that verifies, or None; rename newer ones that do not, with a warning."""
        for checkpoint in reversed(self.all()):
            fault = checkpoint.fault()
            if fault is None:
                return checkpoint
            damaged = checkpoint.folder.with_name(f"{checkpoint.folder.name}.damaged")
            self.progress.warn(
                f"The checkpoint of step {checkpoint.step:,} is damaged: {fault}. It is renamed to {damaged.name}, and "
                "training resumes from the checkpoint before it and computes the steps since then again."
            )
            shutil.rmtree(damaged, ignore_errors=True)
            checkpoint.folder.rename(damaged)
        return None

    def save(
        self, state: CheckpointState, *, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]
    ) -> Checkpoint:
        """Write a checkpoint; if that fails, raise RunError and leave the earlier ones as they are."""
        step = state.progress.step
        place = self.folder / f"step-{step:08d}"
        try:
            with directory_written_atomically(place) as temporary:
                save_file(dict(model), temporary / MODEL_FILE)
                save_file(dict(optimizer), temporary / OPTIMIZER_FILE)
                (temporary / STATE_FILE).write_text(state.model_dump_json(indent=1) + "\n", encoding="utf-8")
        except (OSError, SafetensorError, RunError) as fault:
            raise RunError(self._refusal(step, fault)) from fault
        return Checkpoint(place, step)

    def prune(self, *, keep: int, best_step: int | None) -> None:
        """Remove all but the newest `keep` regular checkpoints, the newest of any kind, and the best one."""
        checkpoints = self.all()
        regular = [checkpoint.step for checkpoint in checkpoints if _is_regular(checkpoint)]
        kept = {*regular[-keep:], best_step, checkpoints[-1].step if checkpoints else None}
        surplus = [checkpoint.folder for checkpoint in checkpoints if checkpoint.step not in kept]
        renamed = [folder.rename(folder.with_name(folder.name + _PRUNED)) for folder in surplus]
        if renamed:
            # Without this flush, a power cut could restore the old name of a folder whose files are already deleted.
            fsync_directory(self.folder)
        for folder in renamed:
            shutil.rmtree(folder, ignore_errors=True)

    def remove_leftovers(self) -> None:
        """Clean up after a kill: remove incomplete and pruned checkpoints, restore one that was being replaced."""
        if not self.folder.is_dir():
            return
        remove_leftovers(self.folder)
        for pruned in self.folder.glob(f"*{_PRUNED}"):
            shutil.rmtree(pruned, ignore_errors=True)

    def require_space(self, *, parameters: int, keep: int) -> int:
        """Raise RunError if the disk cannot hold the checkpoints of the run; return the bytes that they need."""
        each = 3 * 4 * parameters  # a weight and its two means, in float32
        needed = (keep + 2) * each  # besides those kept: the best, and the one being written
        used = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        existing = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        if free + used < needed:
            raise RunError(
                f"{self.folder} has {free / 1e9:.1f} GB free, and checkpoints need {needed / 1e9:.1f} GB "
                f"({keep + 2} of {each / 1e9:.2f} GB). Free some space, use another disk, or lower "
                "training.keep_checkpoints."
            )
        return needed

    def _refusal(self, step: int, fault: Exception) -> str:
        earlier = self.all()
        newest = f"The checkpoint of step {earlier[-1].step:,} is intact" if earlier else "No checkpoint exists yet"
        return (
            f"The checkpoint of step {step:,} could not be written to {self.folder} ({_first_line(fault)}). {newest}. "
            "Free disk space or repair the disk, then run the same command again: it resumes from there."
        )


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as fault:
        raise RunError(
            f"{file} cannot be read ({_first_line(fault)}). Check the disk, then run the same command again."
        ) from fault


def _is_regular(checkpoint: Checkpoint) -> bool:
    try:
        return checkpoint.state().is_regular
    except RunError:  # do not prune a checkpoint that cannot be read
        return True


def _first_line(fault: Exception) -> str:
    return str(fault).partition("\n")[0]
