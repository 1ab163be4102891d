"""What a child is doing at this moment, told through a byte of shared memory, and a kill set for such a moment."""

import ctypes
import functools
import mmap
import os
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transduce.pipeline import averaging, model_writer, preparing
from transduce.pipeline.teaching import TeachersCorpus
from transduce.pipeline.training_stage import TrainingStage
from transduce.pipeline.translating import TranslationStage
from transduce.pipeline.validation import Validator
from transduce.training.checkpoint import Checkpoints

PHASES = ("starting", "preparing", "training", "validating", "saving", "pruning", "averaging", "writing the model")
PHASES_OF = {
    "training.teacher_steps": ("translating", "collecting translations"),
}
"""Those that a run has more with a setting."""
_ALL = tuple(dict.fromkeys([*PHASES, *(phase for phases in PHASES_OF.values() for phase in phases)]))
_PLACES: tuple[tuple[Any, str, str], ...] = (
    (preparing, "prepare", "preparing"),
    (averaging.AveragingStage, "run", "averaging"),
    (model_writer, "save_model", "writing the model"),
    (TrainingStage, "run", "training"),
    (Validator, "__call__", "validating"),
    (Checkpoints, "save", "saving"),
    (Checkpoints, "prune", "pruning"),
    (TranslationStage, "run", "translating"),
    (TeachersCorpus, "run", "collecting translations"),
)


@dataclass
class Strike:
    """A SIGKILL so many seconds after a phase begins, `entry` earlier ones of that phase left alone."""

    phase: str
    entry: int
    seconds: float

    def entered(self, phase: str) -> None:
        """Notice that a phase begins, and set the clock if it is the one."""
        if phase == self.phase:
            self.entry -= 1
            if self.entry == -1:
                kill_in(self.seconds)


def kill_in(seconds: float) -> None:
    """Have this process killed by the system's own clock, wherever it is then, even within a system call."""
    if sys.platform != "linux":
        os.kill(os.getpid(), signal.SIGKILL)
    system, timer = ctypes.CDLL(None), ctypes.c_void_p()
    event = struct.pack("Pii48x", 0, signal.SIGKILL, 0)  # sigevent: no value, the signal, SIGEV_SIGNAL
    assert system.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(timer)) == 0
    whole, part = divmod(max(1, int(seconds * 1e9)), 10**9)
    assert system.timer_settime(timer, 0, struct.pack("llll", 0, 0, whole, part), None) == 0


class Moment:
    """Which phase a child is in; made by the parent, set by the child."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)
        self._strike: Strike | None = None

    @property
    def phase(self) -> str:
        """The phase that the child is in."""
        return _ALL[self._memory[0]]

    def watched(self, work: Callable[[], None], *, strike: Strike | None = None) -> Callable[[], None]:
        """Return `work` such that it tells its phases and is killed in one of them; to be called in the child."""

        def told() -> None:
            self._strike = strike
            for owner, name, phase in _PLACES:
                setattr(owner, name, self._telling(getattr(owner, name), _ALL.index(phase)))
            work()

        self._memory[0] = 0
        return told

    def _telling(self, function: Callable[..., Any], phase: int) -> Callable[..., Any]:
        @functools.wraps(function)
        def telling(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            before, self._memory[0] = self._memory[0], phase
            if self._strike is not None:
                self._strike.entered(_ALL[phase])
            try:
                return function(*arguments, **named)
            finally:
                self._memory[0] = before

        return telling

    def durations(self, is_over: Callable[[], bool]) -> dict[str, float]:
        """Watch a child until it is over; return how long each phase lasts on average, in seconds."""
        seconds = dict.fromkeys(("", *_ALL), 0.0)
        entries: Counter[str] = Counter()
        before, since = "", time.monotonic()
        while not is_over():
            phase, now = self.phase, time.monotonic()
            seconds[before] += now - since
            entries[phase] += phase != before
            before, since = phase, now
            time.sleep(0.0003)
        return {phase: seconds[phase] / entries[phase] for phase in entries}
