import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor

from transduce.errors import RunError
from transduce.files import MANIFEST
from transduce.progress import Silent
from transduce.training.averaging import average_last
from transduce.training.checkpoint import MODEL_FILE, Checkpoint, Checkpoints
from transduce.training.state import CheckpointState, Machine, TrainingProgress


@dataclass
class Listener(Silent):
    warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def state_at(step: int, *, is_regular: bool = True) -> CheckpointState:
    machine = Machine(device="cpu", threads=1, precision="float32", ranks=1)
    return CheckpointState(
        progress=TrainingProgress(step=step), machine=machine, is_regular=is_regular, identity={"seed": 1}
    )


def weights_at(step: int) -> dict[str, Tensor]:
    return {"a": torch.full((2, 3), float(step)), "b": torch.arange(5) * float(step)}


def save(checkpoints: Checkpoints, step: int, *, is_regular: bool = True) -> Checkpoint:
    weights = weights_at(step)
    return checkpoints.save(state_at(step, is_regular=is_regular), model=weights, optimizer={"mean.a": weights["a"]})


def steps(checkpoints: Checkpoints) -> list[int]:
    return [checkpoint.step for checkpoint in checkpoints.all()]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "run" / "checkpoints", progress=Listener())


def test_what_is_saved_comes_back(checkpoints: Checkpoints) -> None:
    save(checkpoints, 7)
    latest = checkpoints.latest()
    assert latest is not None
    assert latest.folder.name == "step-00000007"
    assert latest.state() == state_at(7)
    assert all(torch.equal(tensor, weights_at(7)[name]) for name, tensor in latest.model().items())
    assert torch.equal(latest.optimizer()["mean.a"], weights_at(7)["a"])
    assert {file.suffix for file in latest.folder.iterdir()} == {".json", ".safetensors"}


def test_no_checkpoint_is_no_fault(checkpoints: Checkpoints) -> None:
    assert checkpoints.latest() is None
    checkpoints.remove_leftovers()


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "manifest"])
def test_a_damaged_newest_gives_way_to_the_one_before(checkpoints: Checkpoints, damage: str) -> None:
    save(checkpoints, 5)
    file = save(checkpoints, 10).folder / (MANIFEST if damage == "manifest" else MODEL_FILE)
    content = bytearray(file.read_bytes())
    if damage == "flip":
        content[-1] ^= 1
        file.write_bytes(content)
    elif damage == "remove":
        file.unlink()
    else:
        file.write_bytes(content[:-20])
    latest = checkpoints.latest()
    assert latest is not None
    assert latest.step == 5
    assert isinstance(checkpoints.progress, Listener)
    (warning,) = checkpoints.progress.warnings
    assert "step 10 is damaged" in warning
    assert file.name in warning
    assert "resumes from the checkpoint before it" in warning
    assert steps(checkpoints) == [5]
    assert (checkpoints.folder / "step-00000010.damaged").is_dir()


def test_pruning_keeps_the_newest_regular_ones_the_best_and_the_very_newest(checkpoints: Checkpoints) -> None:
    for step, is_regular in [(10, True), (13, False), (20, True), (30, True), (31, False), (40, True), (44, False)]:
        save(checkpoints, step, is_regular=is_regular)
    checkpoints.prune(keep=2, best_step=13)
    assert steps(checkpoints) == [13, 30, 40, 44]
    save(checkpoints, 50)
    checkpoints.prune(keep=2, best_step=50)
    assert steps(checkpoints) == [40, 50]
    assert sorted(entry.name for entry in checkpoints.folder.iterdir()) == ["step-00000040", "step-00000050"]


def test_a_kill_in_the_middle_of_saving_or_pruning_leaves_only_whole_ones(checkpoints: Checkpoints) -> None:
    folder = save(checkpoints, 5).folder
    shutil.copytree(folder, folder.with_name("step-00000010.being-written-4711-4712"))
    shutil.copytree(folder, folder.with_name("step-00000003.pruned"))
    shutil.copytree(folder, folder.with_name("step-00000004.being-replaced"))
    shutil.copytree(folder, folder.with_name("step-00000005.being-replaced"))
    assert steps(checkpoints) == [5]
    checkpoints.remove_leftovers()
    assert sorted(entry.name for entry in checkpoints.folder.iterdir()) == ["step-00000004", "step-00000005"]


def test_pruning_takes_the_name_for_good_before_the_files_go(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could leave the name with half of the files, and no average would get past it."""
    for step in (1, 2):
        save(checkpoints, step)
    done: list[str] = []
    monkeypatch.setattr("transduce.training.checkpoint.fsync_directory", lambda folder: done.append(folder.name))
    monkeypatch.setattr(shutil, "rmtree", lambda folder, **_: done.append(folder.name))
    checkpoints.prune(keep=1, best_step=None)
    assert done == ["checkpoints", "step-00000001.pruned"]


@pytest.mark.parametrize("step", [-1, 2**53 + 1, 10**30])
def test_an_impossible_step_is_said_to_be_damage(checkpoints: Checkpoints, step: int) -> None:
    place = save(checkpoints, 1).folder / "state.json"
    place.write_text(place.read_text(encoding="utf-8").replace('"step": 1', f'"step": {step}'), encoding="utf-8")
    with pytest.raises(RunError, match=r"state\.json is damaged, or another version"):
        checkpoints.all()[0].state()


def test_a_checkpoint_is_replaced_by_one_of_the_same_step(checkpoints: Checkpoints) -> None:
    save(checkpoints, 5, is_regular=False)
    save(checkpoints, 5)
    assert [checkpoint.state().is_regular for checkpoint in checkpoints.all()] == [True]


def test_a_state_of_another_version_says_so(checkpoints: Checkpoints) -> None:
    file = save(checkpoints, 5).folder / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 9}))
    with pytest.raises(RunError, match=r"another version of transduce wrote it"):
        checkpoints.all()[0].state()


def test_a_disk_that_is_too_small_is_told_before_training(checkpoints: Checkpoints) -> None:
    assert checkpoints.require_space(parameters=1000, keep=5) == 7 * 12_000
    with pytest.raises(RunError, match=r"GB free, and checkpoints need .* training\.keep_checkpoints"):
        checkpoints.require_space(parameters=10**14, keep=5)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
import torch
from transduce.errors import RunError
from transduce.training.checkpoint import Checkpoints
from transduce.training.state import CheckpointState
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
checkpoints = Checkpoints(Path(sys.argv[1]))
state = CheckpointState.model_validate_json((checkpoints.all()[0].folder / "state.json").read_bytes())
state = state.model_copy(update={"progress": state.progress.model_copy(update={"step": 10})})
try:
    checkpoints.save(state, model={"a": torch.zeros(100_000)}, optimizer={})
except RunError as refusal:
    print(refusal)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on file sizes there")
def test_a_disk_that_refuses_leaves_the_checkpoint_before(checkpoints: Checkpoints) -> None:
    save(checkpoints, 5)
    arguments = [sys.executable, "-c", FULL_DISK, str(checkpoints.folder)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "The checkpoint of step 10 could not be written" in result.stdout
    assert "File too large" in result.stdout
    assert "The checkpoint of step 5 is intact" in result.stdout
    assert "run the same command again" in result.stdout
    assert [entry.name for entry in checkpoints.folder.iterdir()] == ["step-00000005"]
    assert checkpoints.all()[0].fault() is None


def test_the_average_is_the_mean_of_the_last(checkpoints: Checkpoints) -> None:
    for step in (2, 4, 6, 8, 10):
        save(checkpoints, step)
    averaged = average_last(checkpoints.folder.parent, last=3)
    assert averaged.steps == (6, 8, 10)
    assert torch.equal(averaged.weights["a"], torch.full((2, 3), 8.0))
    assert torch.equal(averaged.weights["b"], torch.arange(5) * 8.0)


def test_where_a_run_was_stopped_does_not_change_the_average(checkpoints: Checkpoints) -> None:
    for step in (5, 10, 15):
        save(checkpoints, step)
    expected = average_last(checkpoints.folder.parent, last=3).steps
    save(checkpoints, 12, is_regular=False)
    assert average_last(checkpoints.folder.parent, last=3).steps == expected == (5, 10, 15)
    save(checkpoints, 17, is_regular=False)
    assert average_last(checkpoints.folder.parent, last=3).steps == (10, 15, 17)


def test_the_average_of_equal_weights_is_those_weights(checkpoints: Checkpoints) -> None:
    weights = {"a": torch.randn(7, 5)}
    for step in (1, 2, 3):
        checkpoints.save(state_at(step), model=weights, optimizer={})
    assert torch.equal(average_last(checkpoints.folder.parent, last=3).weights["a"], weights["a"])


def test_averaging_nothing_or_damage_is_refused(checkpoints: Checkpoints) -> None:
    run = checkpoints.folder.parent
    with pytest.raises(RunError, match="holds no checkpoint to average"):
        average_last(run, last=5)
    save(checkpoints, 1)
    file = save(checkpoints, 2).folder / MODEL_FILE
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RunError, match=r"step 2 cannot be averaged: .* Delete .*step-00000002 to average the others"):
        average_last(run, last=2)
