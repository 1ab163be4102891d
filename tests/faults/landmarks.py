"""What the files of a run tell about its stages from outside, for a command that is another process."""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults import small_run

SAVING = "saving"


@dataclass(frozen=True)
class Landmarks:
    """The stages of a run in order, each with the name that appears in the run directory at its end."""

    of: Mapping[str, str]

    @classmethod
    def with_settings(cls, settings: small_run.Settings | None) -> "Landmarks":
        """Return those of the small run, which has more stages where there are teachers."""
        chosen = {**small_run.SETTINGS, **(settings or {})}
        of = {"starting": "experiment.toml", "preparing": "data/prepared.json"}
        if "training.teacher_steps" in chosen:
            for direction in ("forward", "backward"):
                folder = f"teachers/{direction}"
                of |= {
                    f"training the {direction} teacher": f"{folder}/{_last(chosen['training.teacher_steps'])}",
                    f"averaging the {direction} teacher": f"{folder}/finished.json",
                    f"translating by the {direction} teacher": f"{folder}/written/0000000000.json",
                }
            of["collecting translations"] = "teachers/corpus"
        return cls({**of, "training": _last(chosen["training.steps"]), "averaging": "finished.json"})

    @property
    def stages(self) -> list[str]:
        """The names of the stages."""
        return list(self.of)

    def stage(self, run: Path) -> str:
        """Return what a command does next, or is doing; the last stage if the run is finished."""
        missing = (stage for stage, name in self.of.items() if not (run / name).exists())
        return next(missing, self.stages[-1])

    def phase(self, run: Path) -> str:
        """Return the same, or that a checkpoint is half there."""
        folders = [run / "checkpoints", *run.glob("teachers/*/checkpoints")]
        return SAVING if any(any(folder.glob("*.being-*")) for folder in folders) else self.stage(run)

    def has_come_to(self, phase: str, run: Path) -> bool:
        """Return whether a command has come to a phase, or past it."""
        stage = self.stage(run)
        if phase == SAVING:
            return self.phase(run) == SAVING or stage == self.stages[-1]
        return self.stages.index(stage) >= self.stages.index(phase)

    def durations(self, process: "subprocess.Popen[bytes]", run: Path) -> dict[str, float]:
        """Watch a command to its end; return how long each stage lasts, in seconds."""
        seconds, since = dict.fromkeys(self.stages, 0.0), time.monotonic()
        while process.poll() is None:
            stage, now = self.stage(run), time.monotonic()
            seconds[stage] += now - since
            since = now
            time.sleep(0.0005)
        assert process.returncode == 0, run
        return seconds


def _last(steps: object) -> str:
    assert isinstance(steps, int)
    return f"checkpoints/step-{steps:08d}"
