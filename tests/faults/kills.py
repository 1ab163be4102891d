"""SIGKILL at random moments of a whole run, again and again: whatever was killed, the end is the same to the bit.

Some kills strike at any time; the others within a phase chosen at random, by the system's own clock, since saving and
averaging are short and would hardly ever be hit by chance.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import small_run
from tests.faults.landmarks import SAVING, Landmarks
from tests.faults.moments import PHASES, PHASES_OF, Moment, Strike

KILLS_OF_A_RUN = 12
"""So often a run is killed before it is let go on to its end."""
KILLS_OF_A_COMMAND = 6
"""The same where each start takes seconds: fewer, so that more runs begin at their beginning."""
Told = Callable[[str], None]


@dataclass
class Tally:
    """What a campaign of kills saw."""

    kills: int = 0
    runs: int = 0
    during: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0
    """Kills that left a half-written or half-removed folder behind."""

    def figures(self) -> dict[str, Any]:
        """Return the figures to record."""
        return {"kills": self.kills, "runs": self.runs, "unfinished writes": self.unfinished, "during": self.during}


class Campaign:
    """Runs that are killed in a folder, all of the same experiment, compared with one that never was."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        told: Told = lambda line: None,
        settings: small_run.Settings | None = None,
    ) -> None:
        self.settings = settings
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.told, self.seed = folder, told, seed
        self.chance = random.Random(seed)
        self.corpus = small_run.write_text(folder / "corpus")
        self.complaints = folder / "complaint.txt"
        self.tally = Tally()
        self.landmarks = Landmarks.with_settings(settings)

    def forked(self, kills: int) -> Tally:
        """Kill forked children this often."""
        moment, whole = Moment(), self.folder / "whole"
        started = time.monotonic()
        process = self._child(whole, moment)
        lasting = moment.durations(lambda: _is_over(process))
        duration = time.monotonic() - started
        expected = small_run.fingerprint(whole)
        for output in self._outputs(kills):
            if self.chance.random() < 0.3:
                process = self._child(output, moment)
                time.sleep(self.chance.uniform(0.0, 0.5 * duration))
                os.kill(process, signal.SIGKILL)
            else:
                process = self._child(output, moment, self._strike(output, lasting))
            is_killed = self._await_end(process, output, during=moment)
            if not is_killed or self._is_due(kills):
                code = small_run.ended(self._child(output, moment))
                self._compare(output, expected, code)
        return self.tally

    def command_line(self, kills: int) -> Tally:
        """Kill `transduce train` this often, as a user would start it."""
        whole = self.folder / "whole"
        lasting = self.landmarks.durations(self._command(whole), whole)
        expected = small_run.fingerprint(whole)
        for output in self._outputs(kills):
            process = self._command(output)
            self._kill_within(process, output, lasting)
            assert process.returncode in (0, -signal.SIGKILL), self._complaint()
            if process.returncode:
                self._count(output, during=self.landmarks.phase(output))
            if self._struck >= KILLS_OF_A_COMMAND or self.tally.kills >= kills or not process.returncode:
                self._compare(output, expected, self._command(output).wait())
        return self.tally

    def _kill_within(self, process: "subprocess.Popen[bytes]", output: Path, lasting: dict[str, float]) -> None:
        """Kill the command at a random moment of the phase ahead of it with the fewest kills, unless it ends before."""
        stages = self.landmarks.stages
        stage = self.landmarks.stage(output)
        ahead = [*stages[stages.index(stage) :]]
        is_clean = self.landmarks.phase(output) != SAVING  # else what the last kill left would be taken for a new save
        if "training" in ahead and is_clean:
            ahead.append(SAVING)
        phase = min(ahead, key=lambda one: (self.tally.during[one], self.chance.random()))
        while process.poll() is None and not self.landmarks.has_come_to(phase, output):
            time.sleep(0.0005)
        delay = self.chance.uniform(0.0, 0.005 if phase == SAVING else lasting[phase])
        if phase == stage != "starting":  # it starts again before it goes on
            delay += self.chance.uniform(0.5, 1.0) * lasting["starting"]
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def _outputs(self, kills: int) -> Iterator[Path]:
        """Yield the run directory to strike at next, until there were enough kills and the last run was compared."""
        self._struck = 0
        while self.tally.kills < kills or self._struck:
            yield self.folder / "killed"

    def _is_due(self, kills: int) -> bool:
        return self._struck >= KILLS_OF_A_RUN or (self.tally.kills >= kills and self._struck > 0)

    def _strike(self, output: Path, lasting: dict[str, float]) -> Strike:
        """Choose a moment among the phases that are ahead of the run, and which of them where there are several."""
        is_prepared, has_corpus = ((output / name).exists() for name in ("data/prepared.json", "teachers/corpus"))
        more = [] if has_corpus else [phase for setting in self.settings or () for phase in PHASES_OF.get(setting, ())]
        phase = self.chance.choice([*PHASES[2:], *more]) if is_prepared else "preparing"
        has_several = phase in ("saving", "pruning", "validating", "translating") or (
            phase in ("training", "averaging", "writing the model") and more
        )
        entry = self.chance.randrange(2) if has_several else 0
        return Strike(phase, entry, self.chance.uniform(0.0, lasting.get(phase, 0.0)))

    def _child(self, output: Path, moment: Moment, strike: Strike | None = None) -> int:
        work = moment.watched(lambda: small_run.train(self.corpus, output, settings=self.settings), strike=strike)
        return small_run.forked(work, complaints=self.complaints)

    def _command(self, output: Path) -> "subprocess.Popen[bytes]":
        with self.complaints.open("wb") as said:
            return subprocess.Popen(
                small_run.command(self.corpus, output, settings=self.settings),
                env=small_run.environment(),
                stdout=said,
                stderr=said,
            )

    def _await_end(self, process: int, output: Path, *, during: Moment) -> bool:
        """Wait for a child, and return whether it was killed before its end."""
        code, phase = small_run.ended(process), during.phase
        assert code in (-signal.SIGKILL, small_run.FINISHED), f"seed {self.seed}: {self._complaint()}"
        if code:
            self._count(output, during=phase)
        return bool(code)

    def _count(self, output: Path, *, during: str) -> None:
        self.tally.kills += 1
        self.tally.during[during] += 1
        self.tally.unfinished += any(output.rglob("*.being-*")) or any(output.rglob("*.pruned"))
        self._struck += 1

    def _compare(self, output: Path, expected: dict[str, str], code: int) -> None:
        assert code == 0, f"seed {self.seed}: {self._complaint()}"
        assert not (other := small_run.difference(output, expected)), (
            f"seed {self.seed}, {self.tally.kills} kills: {other}"
        )
        left = [str(path) for mark in ("*.being-*", "*.pruned", "*.damaged") for path in output.rglob(mark)]
        assert not left, f"seed {self.seed}: left behind {left}"
        shutil.rmtree(output)
        self._struck = 0
        self.tally.runs += 1
        self.told(f"{self.tally.kills:,} kills, {self.tally.runs:,} runs ended with the same weights")

    def _complaint(self) -> str:
        return self.complaints.read_text(encoding="utf-8", errors="replace") if self.complaints.exists() else "silent"


def _is_over(process: int) -> bool:
    """Return whether a child has ended, leaving it to be waited for."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
