"""Several ranks train one model: what they compute is what one rank computes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from transduce.training.averaging import average_last
from transduce.training.checkpoint import Checkpoints
from transduce.training.distributed import World, join_world

PROGRAM = Path(__file__).with_name("train_numbers.py")
EXACT = ("exact", "steps=50", "checkpoint_every=50", "bpe_dropout=0", "peak=1e-3", "tensorboard=false")


def torchrun(folder: Path, *settings: str, ranks: int = 2) -> "subprocess.Popen[str]":
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [*launcher, str(PROGRAM), str(folder), *settings]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def run(process: "subprocess.Popen[str]") -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def alone(folder: Path, *settings: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(PROGRAM), str(folder), *settings]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def final_weights(folder: Path) -> dict[str, Tensor]:
    return average_last(folder / "run", last=1).weights


def furthest(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    return max((one[name] - other[name]).abs().max().item() for name in one)


def test_a_world_of_one_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join_world() as world:
        assert world == World()
        assert world.is_main
        tensor = torch.tensor([1.0, 2.0])
        assert world.sum_(tensor) is tensor
        assert world.broadcast_(tensor) is tensor
        assert world.broadcast_text("Grüße") == "Grüße"
        assert world.any(True)
        assert not world.any(False)
        world.wait_for_all()


@pytest.mark.slow
def test_two_ranks_one_rank_and_accumulation_agree(tmp_path: Path) -> None:
    """In float64 without dropout, after 50 steps, to 1e-9; and so do their validations."""
    run(alone(tmp_path / "one", *EXACT, "micro_batch_tokens=200"))
    run(alone(tmp_path / "accumulated", *EXACT, "micro_batch_tokens=60"))
    output = run(torchrun(tmp_path / "two", *EXACT, "micro_batch_tokens=200"))
    assert output.count("STEPS 50") == 2
    one = final_weights(tmp_path / "one")
    assert one["embeddings.source_VD"].dtype == torch.float64
    for other in ("accumulated", "two"):
        difference = furthest(one, final_weights(tmp_path / other))
        assert 0 < difference < 1e-9, other
    valid = [line for name in ("one", "two") for line in metrics(tmp_path / name) if '"valid"' in line]
    assert len(valid) == 2 * 5


@pytest.mark.slow
def test_two_ranks_train_a_recurrent_network_as_one_does(tmp_path: Path) -> None:
    settings = ("recurrent", *EXACT[:1], "steps=20", "checkpoint_every=20", *EXACT[3:], "micro_batch_tokens=200")
    run(alone(tmp_path / "one", *settings))
    run(torchrun(tmp_path / "two", *settings))
    assert 0 < furthest(final_weights(tmp_path / "one"), final_weights(tmp_path / "two")) < 1e-9


@pytest.mark.slow
def test_two_ranks_share_muon_s_matrices_and_go_where_one_goes(tmp_path: Path) -> None:
    """In float64 without dropout; three ranks, too, of which not all have a matrix of every shape."""
    settings = (*EXACT[:1], "steps=20", "checkpoint_every=20", *EXACT[3:], "micro_batch_tokens=200", "optimizer=muon")
    run(alone(tmp_path / "one", *settings))
    for ranks in (2, 3):
        run(torchrun(tmp_path / str(ranks), *settings, ranks=ranks))
        assert 0 < furthest(final_weights(tmp_path / "one"), final_weights(tmp_path / str(ranks))) < 1e-9


@pytest.mark.slow
def test_the_first_gradients_of_one_and_two_ranks_agree_in_float32(tmp_path: Path) -> None:
    """After one step Adam's mean is the gradient times a constant."""
    settings = ("plain", "steps=1", "checkpoint_every=1", "bpe_dropout=0", "batch_tokens=2000")
    run(alone(tmp_path / "one", *settings, "micro_batch_tokens=2000"))
    run(torchrun(tmp_path / "two", *settings, "micro_batch_tokens=2000"))
    one, two = (Checkpoints(tmp_path / name / "run" / "checkpoints").all()[-1].optimizer() for name in ("one", "two"))
    means = [name for name in one if name.startswith("mean.")]
    for name in means:
        assert one[name].dtype == torch.float32
        assert (one[name] - two[name]).norm() <= 1e-5 * one[name].norm(), name
    assert any(not torch.equal(one[name], two[name]) for name in means), "two ranks add in another order"


def metrics(folder: Path) -> list[str]:
    return (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
def test_identical_runs_of_two_ranks_are_identical_to_the_bit(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(torchrun(tmp_path / name, "steps=20", "micro_batch_tokens=60"))
    one, other = (final_weights(tmp_path / name) for name in ("a", "b"))
    assert one.keys() == other.keys()
    assert furthest(one, other) == 0


@pytest.mark.slow
def test_more_ranks_than_sentences_in_a_step_take_part_with_nothing(tmp_path: Path) -> None:
    settings = ("steps=6", "batch_tokens=14", "micro_batch_tokens=14", "validate_every=100")
    # Three processes write to one pipe, so their lines may run into each other.
    assert run(torchrun(tmp_path, *settings, ranks=3)).count("STEPS") == 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process there cannot be sent these signals")
def test_a_rank_that_dies_leaves_the_others_with_a_message_and_a_restart_goes_on(tmp_path: Path) -> None:
    process = torchrun(tmp_path, "steps=100000", "rank_timeout=20s")
    while not list(tmp_path.glob("run/checkpoints/step-00000006")):
        time.sleep(0.05)
        assert process.poll() is None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    os.kill(int(children[1]), signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    # torchrun may end the rank that is left before it has said what it lost; then torchrun tells.
    assert "lost the others" in output or "Signal 9 (SIGKILL)" in output
    before = max(int(folder.name[5:13]) for folder in tmp_path.glob("run/checkpoints/step-*"))
    assert "STEPS" in run(torchrun(tmp_path, f"steps={before + 4}"))
