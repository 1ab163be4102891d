"""Checkpoints: what a run leaves on the disk so that nothing is lost, whenever it dies.

    checkpoints/step-00001000/   model.safetensors       the weights, float32
                                 optimizer.safetensors   Adam's two running means of every weight
                                 state.json              where the run stands
                                 manifest.json           SHA-256 of each

A folder under that name is whole: it was written beside its place, flushed and renamed. The newest whose manifest
verifies is where a run goes on; a damaged one is set aside and told of. A folder that is pruned first loses its name,
so a kill in the middle leaves nothing that looks like a checkpoint.
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
from transduce.files import directory_written_atomically, fsync_directory, manifest_fault, sweep
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
        """Read where the run stood."""
        try:
            return CheckpointState.model_validate_json((self.folder / STATE_FILE).read_bytes())
        except (OSError, ValidationError) as fault:
            raise RunError(
                f"{self.folder / STATE_FILE} is not of this version of transduce, or damaged ({_first_line(fault)}). "
                "Use the version that wrote it, or begin a new run."
            ) from fault

    def model(self) -> dict[str, Tensor]:
        """Read the weights by name."""
        return _read_tensors(self.folder / MODEL_FILE)

    def optimizer(self) -> dict[str, Tensor]:
        """Read Adam's running means by name."""
        return _read_tensors(self.folder / OPTIMIZER_FILE)

    def fault(self) -> str | None:
        """Return what is wrong with the files, or None if each is what its manifest says."""
        return manifest_fault(self.folder)


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, *, progress: Progress | None = None) -> None:
        self.folder = folder
        self.progress = progress or Silent()

    def all(self) -> list[Checkpoint]:
        """Return every checkpoint by its name, oldest first, verified or not."""
        if not self.folder.is_dir():
            return []
        named = ((_NAME.fullmatch(entry.name), entry) for entry in self.folder.iterdir() if entry.is_dir())
        found = [Checkpoint(entry, int(match.group(1))) for match, entry in named if match]
        return sorted(found, key=lambda checkpoint: checkpoint.step)

    def newest_whole(self) -> Checkpoint | None:
        """Return the newest checkpoint that verifies, and leave all as they are; None if there is none."""
        return next((one for one in reversed(self.all()) if one.fault() is None), None)

    def latest(self) -> Checkpoint | None:
        """Return the newest checkpoint that verifies, warning of newer ones that do not; None if there is none."""
        for checkpoint in reversed(self.all()):
            fault = checkpoint.fault()
            if fault is None:
                return checkpoint
            aside = checkpoint.folder.with_name(f"{checkpoint.folder.name}.damaged")
            self.progress.warn(
                f"The checkpoint of step {checkpoint.step:,} is damaged: {fault}. It is set aside as {aside.name}, "
                "and training goes on from the one before; nothing but the time since then is lost."
            )
            shutil.rmtree(aside, ignore_errors=True)
            checkpoint.folder.rename(aside)
        return None

    def save(
        self, state: CheckpointState, *, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor]
    ) -> Checkpoint:
        """Write a checkpoint; when the disk refuses, the ones before it stay as they are."""
        step = state.progress.step
        place = self.folder / f"step-{step:08d}"
        try:
            with directory_written_atomically(place) as beside:
                save_file(dict(model), beside / MODEL_FILE)
                save_file(dict(optimizer), beside / OPTIMIZER_FILE)
                (beside / STATE_FILE).write_text(state.model_dump_json(indent=1) + "\n", encoding="utf-8")
        except (OSError, SafetensorError, RunError) as fault:
            raise RunError(self._refusal(step, fault)) from fault
        return Checkpoint(place, step)

    def prune(self, *, keep: int, best_step: int | None) -> None:
        """Remove all but the newest `keep` regular checkpoints, the newest of any kind, and the best one."""
        checkpoints = self.all()
        regular = [checkpoint.step for checkpoint in checkpoints if _is_regular(checkpoint)]
        kept = {*regular[-keep:], best_step, checkpoints[-1].step if checkpoints else None}
        doomed = [checkpoint.folder for checkpoint in checkpoints if checkpoint.step not in kept]
        unnamed = [folder.rename(folder.with_name(folder.name + _PRUNED)) for folder in doomed]
        if unnamed:
            # Else a power cut could bring a name back whose files are gone, and no average would find them.
            fsync_directory(self.folder)
        for folder in unnamed:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Finish what a kill interrupted: an unfinished checkpoint is removed, a replaced one brought back."""
        if not self.folder.is_dir():
            return
        sweep(self.folder)
        for doomed in self.folder.glob(f"*{_PRUNED}"):
            shutil.rmtree(doomed, ignore_errors=True)

    def require_space(self, *, parameters: int, keep: int) -> int:
        """Refuse to begin on a disk that cannot hold the checkpoints to come; return the bytes they will take."""
        each = 3 * 4 * parameters  # a weight and its two means, in float32
        needed = (keep + 2) * each  # the newest, the best, and the one being written
        there = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
        existing = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        if free + there < needed:
            raise RunError(
                f"{self.folder} has {free / 1e9:.1f} GB free, and checkpoints will take {needed / 1e9:.1f} GB "
                f"({keep + 2} of {each / 1e9:.2f} GB). Free some, lower training.keep_checkpoints, or use another disk."
            )
        return needed

    def _refusal(self, step: int, fault: Exception) -> str:
        before = self.all()
        stands = f"The checkpoint of step {before[-1].step:,} is intact" if before else "No checkpoint exists yet"
        return (
            f"The checkpoint of step {step:,} could not be written to {self.folder} ({_first_line(fault)}). {stands}. "
            "Make room or mend the disk, then run the same command again: it goes on from there."
        )


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as fault:
        raise RunError(f"{file} cannot be read ({_first_line(fault)}).") from fault


def _is_regular(checkpoint: Checkpoint) -> bool:
    try:
        return checkpoint.state().is_regular
    except RunError:  # what cannot be read is not thrown away in passing
        return True


def _first_line(fault: Exception) -> str:
    return str(fault).partition("\n")[0]
