"""A small part of the campaign of faults, in `make extended`; `make faults` is the whole.

Each part runs in a process of its own, which forks. Its seed is always the same; `make explore` takes new ones.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.small_run import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the processes that it kills"),
]

COUNTS = {
    "forked": 20,
    "teachers": 6,
    "command-line": 2,
    "stages": 3,
    "damaged-checkpoints": 4,
    "flipped-bits": 30,
    "models": 1_500,
    "imports": 1_500,
    "weights": 3_000,
    "corpora": 200,
}


def campaign(part: str, *, count: int, folder: Path) -> None:
    seed = random.SystemRandom().randrange(10**6) if os.environ.get("TRANSDUCE_EXAMPLES") == "explore" else 1
    result = subprocess.run(
        [
            *(sys.executable, "-m", "tests.faults.campaign", part, "--count", str(count), "--seed", str(seed)),
            *("--results", str(folder / "results.json")),
        ],
        cwd=Path(__file__).parents[2],
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout[-6000:]}\n{result.stderr[-2000:]}"
    print(result.stdout[-300:])


@pytest.mark.parametrize("part", COUNTS)
def test_whatever_strikes_a_run_ends_the_same_or_says_why(part: str, tmp_path: Path) -> None:
    campaign(part, count=COUNTS[part], folder=tmp_path)


@pytest.mark.needs("strace")
@pytest.mark.parametrize(("part", "count"), [("calls-of-a-save", 16), ("calls-of-a-run", 8), ("power-cuts", 12)])
def test_whatever_call_the_disk_fails_at(part: str, count: int, tmp_path: Path) -> None:
    campaign(part, count=count, folder=tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the ranks in /proc")
def test_ranks_killed_under_torchrun(tmp_path: Path) -> None:
    campaign("ranks", count=2, folder=tmp_path)
