"""Power cuts can tell a run that flushes from one that does not: else their figures mean nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.power_loss import Blackouts
from tests.faults.small_run import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("strace"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the run that it records"),
]
CUTS = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def blackouts(tmp_path_factory: pytest.TempPathFactory) -> Blackouts:
    strace, folder = shutil.which("strace"), tmp_path_factory.mktemp("power")
    assert strace is not None
    program = f"from pathlib import Path; Blackouts(Path({str(folder)!r}), strace={strace!r}, seed=1)"
    command = [sys.executable, "-c", f"from tests.faults.power_loss import Blackouts; {program}"]
    recorded = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, encoding="utf-8", check=False
    )  # in a process of its own: what others left in this one, threads above all, is not to be forked
    assert recorded.returncode == 0, recorded.stderr
    return Blackouts(folder, strace=strace, seed=1)


def broken_promises(blackouts: Blackouts) -> list[str]:
    """Cut the power all over the recording, and return what was saved and is not there."""
    found = []
    for number in range(CUTS):
        try:
            blackouts.cut(number * len(blackouts.operations) // CUTS, trial=f"t-{number}")
        except AssertionError as failure:
            found.append(str(failure))
    return found


def test_what_was_saved_outlives_every_cut(blackouts: Blackouts) -> None:
    counts = range(len(blackouts.operations))
    assert {name.partition("/")[0] for count in counts for name in blackouts.promised(count)} == {
        "checkpoints",
        "model",
    }
    assert broken_promises(blackouts) == []


def test_a_run_that_forgot_to_flush_would_be_caught(blackouts: Blackouts, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = [operation for operation in blackouts.operations if operation.kind != "flush"]
    monkeypatch.setattr(blackouts, "operations", forgetful)
    assert broken_promises(blackouts)


def test_one_that_flushed_files_but_not_folders_would_be_caught(
    blackouts: Blackouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_folder = {str(Path(operation.path).parent) for operation in blackouts.operations}
    forgetful = [
        operation for operation in blackouts.operations if operation.kind != "flush" or operation.path not in is_folder
    ]
    monkeypatch.setattr(blackouts, "operations", forgetful)
    assert broken_promises(blackouts)
