"""What a child is doing at this moment, told through a byte of shared memory, so that a kill can strike there."""

import functools
import mmap
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from transduce.pipeline import run as pipeline
from transduce.pipeline.validation import Validator
from transduce.training.checkpoint import Checkpoints

PHASES = ("starting", "preparing", "training", "validating", "saving", "pruning", "averaging", "writing the model")
_PLACES: tuple[tuple[Any, str, str], ...] = (
    (pipeline, "prepare", "preparing"),
    (pipeline, "average_last", "averaging"),
    (pipeline, "save_model", "writing the model"),
    (pipeline.Run, "train", "training"),
    (Validator, "__call__", "validating"),
    (Checkpoints, "save", "saving"),
    (Checkpoints, "prune", "pruning"),
)


class Moment:
    """Which phase a child is in; made by the parent, set by the child."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    @property
    def phase(self) -> str:
        """The phase that the child is in."""
        return PHASES[self._memory[0]]

    def watched(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return `work` such that it tells its phases; to be called in the child."""

        def told() -> None:
            for owner, name, phase in _PLACES:
                setattr(owner, name, self._telling(getattr(owner, name), PHASES.index(phase)))
            work()

        self._memory[0] = 0
        return told

    def _telling(self, function: Callable[..., Any], phase: int) -> Callable[..., Any]:
        @functools.wraps(function)
        def telling(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            before, self._memory[0] = self._memory[0], phase
            try:
                return function(*arguments, **named)
            finally:
                self._memory[0] = before

        return telling

    def durations(self, is_over: Callable[[], bool]) -> dict[str, float]:
        """Watch a child until it is over; return how long each phase lasts on average, in seconds."""
        seconds = dict.fromkeys(("", *PHASES), 0.0)
        entries: Counter[str] = Counter()
        before, since = "", time.monotonic()
        while not is_over():
            phase, now = self.phase, time.monotonic()
            seconds[before] += now - since
            entries[phase] += phase != before
            before, since = phase, now
            time.sleep(0.0003)
        return {phase: seconds[phase] / entries[phase] for phase in entries}
