"""Ranks that die, freeze or wait: none hangs, only rank 0 writes, and a validation is shared without a trace."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.faults.small_run import environment

pytestmark = [pytest.mark.slow, pytest.mark.extended, pytest.mark.skipif(not hasattr(os, "fork"), reason="forks ranks")]


def scene(name: str, folder: Path) -> dict[str, Any]:
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-m", "tests.faults.ranks", name, str(folder)],
        cwd=root,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_only_rank_0_writes(tmp_path: Path) -> None:
    found = scene("who_writes", tmp_path)
    assert found["codes"] == [0, 0], found["said"]
    assert found["wrote"][0]
    assert found["wrote"][1] == []


def test_only_rank_0_speaks(tmp_path: Path) -> None:
    found = scene("who_speaks", tmp_path)
    assert found["codes"] == [0, 0], found["printed"]
    assert "12 steps" in found["printed"][0]
    assert found["printed"][1] == ""


def test_a_shared_validation_finds_the_same_numbers_to_the_bit(tmp_path: Path) -> None:
    found = scene("validations", tmp_path)
    assert [len(found[ranks]) for ranks in "123"] == [1, 2, 3]
    assert {tuple(numbers) for ranks in found.values() for numbers in ranks} == {tuple(found["1"][0])}


def test_a_rank_that_freezes_leaves_the_other_with_a_message(tmp_path: Path) -> None:
    found = scene("a_rank_that_stops", tmp_path)
    assert found["code"] == 2
    assert found["seconds"] < 20
    assert "Rank 0 of 2 lost the others while" in found["said"]
    assert "did not answer within 2s" in found["said"]
    assert "The newest checkpoint is intact, and the same command resumes from it" in found["said"]


def test_work_for_all_may_take_longer_than_the_time_out_but_not_be_silent(tmp_path: Path) -> None:
    found = scene("a_long_preparation", tmp_path)
    assert found["slow"]["codes"] == [0, 0, 0], found["slow"]["said"]
    assert found["slow"]["seconds"] > 3
    assert found["frozen"]["codes"][1:] == [2, 2]
    assert "waited for a rank that is asleep, and has had no sign of life from it for 1s" in found["frozen"]["said"][1]
    assert found["failing"]["codes"] == [2, 2, 2]
    assert "Rank 2 of 3 stopped because another rank failed while preparing" in found["failing"]["said"][2]


def test_ranks_that_are_started_again_take_no_notice_of_what_the_dead_wrote(tmp_path: Path) -> None:
    attempts = scene("attempts_on_one_store", tmp_path)
    assert attempts.pop("agent") == -signal.SIGKILL
    assert len(attempts) == 10
    for name, found in attempts.items():
        assert found["after"] == [[0, 0], [0, 0]], f"{name}: {found}"
        assert (found["struck"] == [0, 0]) == (name == "none"), f"{name}: {found}"


def test_machines_need_share_no_disk_but_the_same_text(tmp_path: Path) -> None:
    found = scene("separate_disks", tmp_path)
    assert found["codes"] == [[0, 0], [0, 0]], found["said"]
    assert found["difference"] == []
    assert found["on the second machine"] == ["data"]
    codes, said = found["differing"]
    assert codes == [2, 2]
    assert "The corpus that rank 0 prepared" in said[0]
    assert "differs from that of ranks 0. Give every machine the same text, or let them share one disk" in said[1]


def test_teachers_of_machines_that_share_no_disk(tmp_path: Path) -> None:
    found = scene("teachers_on_separate_disks", tmp_path)
    assert found["codes"] == [[0, 0], [0, 0]], found["said"]
    assert found["difference"] == []
    assert found["on the second machine"] == ["data", "teachers"]
    assert found["same corpus"]
