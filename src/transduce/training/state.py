"""The state of a run: what a resume needs besides the weights and the optimizer's running means.

It holds no random state; `randomness.py` explains why.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, JsonValue, NonNegativeFloat, PositiveInt

from transduce.errors import RunError
from transduce.machine import Compute

Count = Annotated[int, Field(ge=0, le=2**53)]
"""A count up to the largest integer that a float represents exactly."""


class BestValidation(BaseModel, frozen=True, extra="forbid"):
    """The best validation so far."""

    step: PositiveInt
    measure: Literal["loss", "bleu"]
    value: float


class TrainingProgress(BaseModel, frozen=True, extra="forbid"):
    """The progress of a run: steps, epochs, tokens, time, and the best validation."""

    step: Count = 0
    epoch: Count = 0
    position: Count = 0
    """Steps taken in the current epoch."""
    tokens: Count = 0
    """Target tokens seen, over all starts and ranks."""
    seconds: NonNegativeFloat = 0.0
    """Time spent in training, over all starts."""
    best: BestValidation | None = None
    validations_without_better: Count = 0

    def after_step(self, *, tokens: int, steps_in_epoch: int) -> Self:
        """Return the progress after one more step, which may end the epoch."""
        ends_epoch = self.position + 1 == steps_in_epoch
        return self.model_copy(
            update={
                "step": self.step + 1,
                "epoch": self.epoch + ends_epoch,
                "position": 0 if ends_epoch else self.position + 1,
                "tokens": self.tokens + tokens,
            }
        )

    def after_validation(self, *, measure: Literal["loss", "bleu"], value: float) -> Self:
        """Return the progress after a validation: a new best, or one more validation without a better one."""
        if not math.isfinite(value):
            is_better = False
        elif self.best is None or self.best.measure != measure:
            is_better = True
        else:
            is_better = value < self.best.value if measure == "loss" else value > self.best.value
        if is_better:
            best = BestValidation(step=self.step, measure=measure, value=value)
            return self.model_copy(update={"best": best, "validations_without_better": 0})
        return self.model_copy(update={"validations_without_better": self.validations_without_better + 1})


class Machine(BaseModel, frozen=True, extra="forbid"):
    """The device, threads, precision and ranks of a run; a resume with others rounds differently."""

    device: str
    threads: PositiveInt
    precision: Literal["float32", "bf16"]
    ranks: PositiveInt

    @classmethod
    def of(cls, compute: Compute, *, ranks: int) -> Self:
        """Return the machine of this compute and this number of ranks."""
        return cls(device=compute.device, threads=compute.threads, precision=compute.precision, ranks=ranks)


class CheckpointState(BaseModel, frozen=True, extra="forbid"):
    """The contents of a checkpoint's state.json."""

    format: Literal[1] = 1
    progress: TrainingProgress
    machine: Machine
    is_regular: bool
    """Whether it was saved at the configured interval, and not because of a stop, a best validation or the end.

    Averaging leaves out the others, except the newest, so that an interruption does not change the average.
    """
    batch_plan: int = 1
    """The version of the rule that planned the steps (`PLAN_VERSION`); 1 for older checkpoints, which lack this key."""
    identity: dict[str, JsonValue]
    """The settings that determine the weights, by dotted key."""


def differences(was: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> list[str]:
    """Return a sentence for each key whose value differs."""
    return [
        f"{key} was {was.get(key)!r} and is now {now.get(key)!r}"
        for key in sorted({*was, *now})
        if was.get(key) != now.get(key)
    ]


def refuse_other_settings(run: Path, was: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> None:
    """Raise RunError if the settings that affect the weights differ from those that the run was begun with."""
    changed = differences(was, now)
    if changed:
        raise RunError(
            f"{run} was begun with other settings, and these would change its weights: {'; '.join(changed)}. "
            "Leave them out to resume, or give another --output for a new run; with "
            f"--start-from {run} the new run begins with the weights of this one."
        )
