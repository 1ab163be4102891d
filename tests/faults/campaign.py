"""The whole campaign of faults: `make faults`, or a part of it: python -m tests.faults.campaign PART … [--count N]

Each part shows how far it is and adds its figures to a JSON file; docs/reliability.md states those of the last whole
campaign. Without a count a part does what its name promises.
"""

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from tests.faults import (
    damage,
    mutated_corpora,
    mutated_imports,
    mutated_models,
    mutated_weights,
    small_run,
    system_calls,
    torchrun,
)
from tests.faults import flipped_bits as flips
from tests.faults.kills import Campaign
from tests.faults.power_loss import Blackouts
from tests.faults.watched_reading import watched

from transduce.machine import processor_name
from transduce.version import __version__

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "faults.json"
Told = Callable[[str], None]
STAGES: small_run.Settings = {"training.teacher_steps": 6, "training.optimizer": "muon"}
"""Besides what the small run has anyway: BPE-dropout and gradients accumulated over micro-batches."""
_CONSTANT = {"formats", "recorded calls", "calls"}


@dataclass(frozen=True)
class Job:
    """What a part is given."""

    folder: Path
    count: int
    seed: int
    told: Told

    @property
    def strace(self) -> str:
        """Where strace is."""
        found = shutil.which("strace")
        assert found, "this part needs strace: apt-get install strace"
        return found


def command_line(job: Job) -> dict[str, Any]:
    """Kill `transduce train` with SIGKILL at random moments."""
    return Campaign(job.folder, seed=job.seed, told=job.told).command_line(job.count).figures()


def stages(job: Job) -> dict[str, Any]:
    """The same with all that training can do, spread over the stages of a run with teachers."""
    return Campaign(job.folder, seed=job.seed, told=job.told, settings=STAGES).command_line(job.count).figures()


def forked(job: Job) -> dict[str, Any]:
    """Kill forked runs with SIGKILL at random moments of every phase."""
    return Campaign(job.folder, seed=job.seed, told=job.told).forked(job.count).figures()


def teachers(job: Job) -> dict[str, Any]:
    """The same with teachers, whose training and translations come first."""
    settings = {"training.teacher_steps": 4}
    return Campaign(job.folder, seed=job.seed, told=job.told, settings=settings).forked(job.count).figures()


def _calls(job: Job, scene: int) -> dict[str, Any]:
    def chosen(strikes: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
        return strikes if job.count >= len(strikes) else random.Random(job.seed).sample(strikes, job.count)

    return system_calls.campaign(system_calls.scenes(job.folder, strace=job.strace)[scene], chosen, job.told)


def calls_of_a_save(job: Job) -> dict[str, Any]:
    """SIGKILL, ENOSPC and EIO at every call that writes in a save, a pruning and the averaging."""
    return _calls(job, 0)


def calls_of_a_run(job: Job) -> dict[str, Any]:
    """The same at the calls of a whole run."""
    return _calls(job, 1)


def power_cuts(job: Job) -> dict[str, Any]:
    """Cut the power, with whatever was not flushed lost or torn."""
    return Blackouts(job.folder, strace=job.strace, seed=job.seed).campaign(job.count, job.told)


def damaged_checkpoints(job: Job) -> dict[str, Any]:
    """Tear or flip a bit of the newest checkpoint."""
    return damage.campaign(job.folder, trials=job.count, seed=job.seed, told=job.told)


def flipped_bits(job: Job) -> dict[str, Any]:
    """Flip a bit anywhere in an unfinished run; one in fifty is then trained to the end."""
    ends = max(1, job.count // 50)
    return flips.campaign(job.folder, loads=job.count, ends=ends, seed=job.seed, told=job.told)


def models(job: Job) -> dict[str, Any]:
    """Read mutated model directories and checkpoints."""
    torch.set_num_threads(1)
    case = mutated_models.cases(job.folder / "files", seed=job.seed)
    return watched(case, count=job.count, folder=job.folder, told=job.told)


def imports(job: Job) -> dict[str, Any]:
    """Read mutated models of other programs."""
    case = mutated_imports.cases(job.folder / "files", seed=job.seed)
    return watched(case, count=job.count, folder=job.folder, told=job.told)


def weights(job: Job) -> dict[str, Any]:
    """Give the C++ core damaged weights."""
    return watched(mutated_weights.cases(seed=job.seed), count=job.count, folder=job.folder, told=job.told)


def corpora(job: Job) -> dict[str, Any]:
    """Read mutated corpora, `count` of every format."""
    number, case = mutated_corpora.cases(job.folder / "files", seed=job.seed)
    found = watched(case, count=job.count * number, folder=job.folder, told=job.told)
    return {"formats": number, "of each": job.count, **found}


def ranks(job: Job) -> dict[str, Any]:
    """Kill ranks under torchrun."""
    return torchrun.campaign(job.folder, kills=job.count, seed=job.seed, told=job.told)


PARTS: dict[str, tuple[Callable[[Job], dict[str, Any]], int]] = {
    "forked": (forked, 1_000),
    "teachers": (teachers, 200),
    "command-line": (command_line, 200),
    "stages": (stages, 100),
    "calls-of-a-save": (calls_of_a_save, 10_000),
    "calls-of-a-run": (calls_of_a_run, 10_000),
    "power-cuts": (power_cuts, 500),
    "damaged-checkpoints": (damaged_checkpoints, 50),
    "flipped-bits": (flipped_bits, 10_000),
    "models": (models, 100_000),
    "imports": (imports, 100_000),
    "weights": (weights, 100_000),
    "corpora": (corpora, 10_000),
    "ranks": (ranks, 100),
}


def main() -> int:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description="Kill, starve, damage and mislead transduce.")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all unless named")
    parser.add_argument("--count", type=int, help="trials of each part, instead of the whole campaign's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="add to the figures that stand there, from other seeds")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--folder", type=Path, default=_quick_folder(), help="where runs are made and killed")
    options = parser.parse_args()
    failed = [part for part in options.parts or PARTS if not _ran(part, options)]
    print("all parts held" if not failed else f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


def _ran(part: str, options: argparse.Namespace) -> bool:
    work, count = PARTS[part]
    folder = Path(tempfile.mkdtemp(prefix=f"faults-{part}-", dir=options.folder))
    started = time.monotonic()

    def told(line: str) -> None:
        print(f"[{part}, {time.monotonic() - started:,.0f} s] {line}", flush=True)

    told(f"begins, in {folder}")
    try:
        figures = work(Job(folder, options.count or count, options.seed, told))
    except AssertionError as fault:
        figures = {"faults": [str(fault)]}
    shutil.rmtree(folder, ignore_errors=True)
    faults = figures.get("faults", [])
    told(f"{len(faults)} faults" if faults else "held")
    figures = {**figures, "seeds": [options.seed], "seconds": round(time.monotonic() - started)}
    _record(options.results, part, figures, adds=options.add)
    return not faults


def _sum(before: Any, now: Any, *, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the figures of two campaigns as those of one."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {
            key: _sum(before[key], now[key], name=key)
            if key in before and key in now
            else before.get(key, now.get(key))
            for key in {**before, **now}
        }
    if isinstance(now, list) and isinstance(before, list):
        return [*before, *now]
    if isinstance(now, str) or name in _CONSTANT:
        return now
    return max(before, now) if name.startswith(("slowest", "most")) else before + now


def _record(place: Path, part: str, figures: dict[str, Any], *, adds: bool) -> None:
    results: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError):
        results = json.loads(place.read_text(encoding="utf-8"))
    if adds and part in results:
        figures = _sum({key: results[part][key] for key in figures if key in results[part]}, figures, name=part)
    machine = {
        "processor": processor_name(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transduce": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }
    results[part] = {"command": f"python -m tests.faults.campaign {part}", **machine, **figures}
    place.write_text(json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _quick_folder() -> Path:
    """Return a folder in memory where there is one: a disk that is really flushed makes each trial seconds long."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


if __name__ == "__main__":
    sys.exit(main())
