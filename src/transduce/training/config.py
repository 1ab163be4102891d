"""How to train: the values of section 5 of "Attention Is All You Need" and of 6.1's checkpoints, with their units.

`TrainingConfig()` is the paper's base recipe but for its length, which is open: without a budget of steps, epochs
or time, training ends when validation stops improving.

A run may be started again and again. Some keys may differ between its starts (budgets, intervals, logging,
patience): they decide when to look or stop, never where the weights go. All others alter the trajectory, and a
resume that would change one is refused.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    model_validator,
)

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

Duration = Annotated[str, StringConstraints(pattern=r"^(\d+(\.\d+)?[smhd])+$")]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]

PATIENCE_WITHOUT_BUDGET = 10

MAY_CHANGE_BETWEEN_STARTS = frozenset(
    {
        "steps",
        "epochs",
        "time",
        "threads",
        "checkpoint_every",
        "validate_every",
        "report_every",
        "keep_checkpoints",
        "average_last",
        "best_by",
        "patience",
        "tensorboard",
        "rank_timeout",
        "shortlist",
    }
)


def seconds(duration: str) -> float:
    """Return a duration such as "90s", "10m", "2h" or "1h30m" in seconds."""
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _DURATION.findall(duration))


class TrainingConfig(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """How to train. The defaults are the paper's base model, without its 100,000 steps."""

    steps: PositiveInt | None = None
    """Stop after this many steps; 100,000 for the base model and 300,000 for the big one. [steps] (5.2)"""
    epochs: PositiveInt | None = None
    """Stop after this many passes over the corpus. [epochs]"""
    time: Duration | None = None
    """Stop after this much time spent in training, over all starts of the run, such as "2h" or "1h30m"; the teachers'
    training is not counted. [time]"""
    patience: PositiveInt | None = None
    """Stop after this many validations in a row without a better one. Without any budget it is 10; with a budget
    and no patience, training uses its whole budget. [validations]
    """

    seed: NonNegativeInt = 1
    """What all randomness is derived from: initial weights, order of batches, dropout, sampled segmentation."""
    start_from: str | None = None
    """A model directory whose weights and tokenizer to begin with, under a fresh optimizer. [folder]"""

    batch_tokens: PositiveInt = 25_000
    """Target tokens of one step, and source tokens likewise, over all ranks and micro-batches. [tokens] (5.1)"""
    micro_batch_tokens: PositiveInt | None = None
    """Tokens run at once; a step's gradients are summed over its micro-batches. Less needs less memory. The
    step's whole share unless given. [tokens]
    """

    schedule: Literal["paper", "inverse_sqrt", "cosine", "constant"] = "paper"
    """How the learning rate moves: `paper` is equation 3, d_model^-0.5 · min(step^-0.5, step · warmup^-1.5);
    the others rise to `peak` in a straight line and then fall with step^-0.5, along half a cosine, or not. (5.3)
    """
    warmup_steps: NonNegativeInt = 4000
    """Steps over which the learning rate rises. [steps] (5.3)"""
    scale: PositiveFloat = 1.0
    """Factor on the rate of schedule `paper`; 1 is the paper's. (5.3)"""
    peak: PositiveFloat | None = None
    """Highest learning rate of the schedules other than `paper`, which need it."""
    decay_steps: PositiveInt | None = None
    """Step at which schedule `cosine`, which needs it, reaches 0 and training ends. [steps]"""

    optimizer: Literal["adam", "muon"] = "adam"
    """What moves the weights: `adam`, or for the matrices of the layers `muon`, whose steps are equally long in every
    direction, and Adam for the rest. Departure: Jordan et al. 2024. (5.3)
    """
    beta1: Share = 0.9
    """Adam's decay of the mean of gradients. (5.3)"""
    beta2: Share = 0.98
    """Adam's decay of the mean of squared gradients. (5.3)"""
    epsilon: PositiveFloat = 1e-9
    """What Adam adds to the root it divides by. (5.3)"""
    clip_norm: PositiveFloat | None = None
    """Scale a step's gradient down to this Euclidean norm where it is longer. The paper does not clip."""

    label_smoothing: Share = 0.1
    """ε_ls, the share of probability taken from the true token. (5.4)"""
    smoothing: Literal["szegedy", "authors"] = "szegedy"
    """Who receives that share: with `szegedy`, the work the paper cites, every token of the vocabulary, the true
    one too; with `authors`, their code, the others alone. They differ by a factor of (V - 1) / V in ε. (5.4)
    """
    r_drop: NonNegativeFloat = 0.0
    """Weight of R-Drop's divergence between two dropout passes of each batch; 0 is off, and anything else takes
    two passes. Departure: Liang et al. 2021.
    """
    bpe_dropout: Share = 0.0
    """Probability of dropping a merge when a training sentence is segmented, anew in every epoch; 0 is off.
    Departure: Provilkov et al. 2020.
    """
    teacher_steps: PositiveInt | None = None
    """Train two teachers first, networks like this one, for so many steps each, one in each direction, and let them
    translate the training text: the forward one its sources, the backward one its targets. Training then learns from
    three times as many pairs. Off unless given. Departure: data diversification, Nguyen et al. 2020. [steps]
    """

    precision: Literal["auto", "float32", "bf16"] = "auto"
    """What matrix products compute in; weights, optimizer and reductions stay in float32. `auto` is bf16 where the
    processor multiplies it natively. What a run began with is kept by every resume.
    """
    threads: PositiveInt | None = None
    """Threads to compute with; all available cores unless given. Kept by a resume, as other threads round
    otherwise. [threads]
    """

    checkpoint_every: PositiveInt | Duration = "10m"
    """Save a checkpoint every so many steps, or every so much time, such as "10m". [steps or time] (6.1)"""
    keep_checkpoints: PositiveInt = 5
    """How many of the newest checkpoints stay on the disk, beside the best one. [checkpoints]"""
    average_last: PositiveInt = 5
    """How many of the newest checkpoints the finished model averages; the big model's 20. [checkpoints] (6.1)"""
    validate_every: PositiveInt = 1000
    """Measure the loss on the validation set every so many steps. [steps]"""
    best_by: Literal["loss", "bleu"] = "loss"
    """What makes a validation the best so far."""
    shortlist: NonNegativeInt = 0
    """Learn beside the network which target tokens each source token becomes, at most so many, for
    `decoding.shortlist`; 0 learns nothing, 50 is enough. Departure. [tokens]
    """
    report_every: PositiveInt = 50
    """Write a line of metrics every so many steps. [steps]"""
    tensorboard: bool = True
    """Write TensorBoard events beside metrics.jsonl."""
    rank_timeout: Duration = "10m"
    """With several ranks, how long one waits for the others to answer before it gives up. [time]"""

    @model_validator(mode="after")
    def schedule_has_what_it_needs(self) -> Self:
        """Refuse a schedule without its peak or its end, and values that a schedule would ignore."""
        if self.schedule == "paper":
            if self.peak is not None:
                raise ValueError(
                    f'peak = {self.peak:g} has no effect on schedule = "paper", whose rate follows from d_model and '
                    'warmup_steps. Set scale instead, or choose schedule = "inverse_sqrt".'
                )
            if self.warmup_steps == 0:
                raise ValueError(
                    'warmup_steps = 0 leaves schedule = "paper" without a rate. Set it to 4000, as in the paper.'
                )
        else:
            if self.peak is None:
                raise ValueError(f'schedule = "{self.schedule}" needs peak, its highest rate, such as peak = 5e-4.')
            if self.scale != 1.0:
                raise ValueError(
                    f'scale = {self.scale:g} has no effect on schedule = "{self.schedule}". Multiply peak instead.'
                )
        if self.schedule == "cosine" and (self.decay_steps is None or self.decay_steps <= self.warmup_steps):
            raise ValueError(
                f'schedule = "cosine" needs decay_steps, the step at which it reaches 0, beyond warmup_steps = '
                f"{self.warmup_steps}; it is {self.decay_steps}."
            )
        if self.schedule != "cosine" and self.decay_steps is not None:
            raise ValueError(f'decay_steps = {self.decay_steps} belongs to schedule = "cosine" alone. Remove it.')
        return self

    @model_validator(mode="after")
    def averages_what_is_kept(self) -> Self:
        """Refuse to average more checkpoints than stay on the disk."""
        if self.average_last > self.keep_checkpoints:
            raise ValueError(
                f"average_last = {self.average_last} checkpoints cannot be averaged when keep_checkpoints = "
                f"{self.keep_checkpoints}. Keep at least {self.average_last}."
            )
        return self

    @model_validator(mode="after")
    def micro_batch_is_a_part(self) -> Self:
        """Refuse a micro-batch larger than the step it is a part of."""
        if self.micro_batch_tokens is not None and self.micro_batch_tokens > self.batch_tokens:
            raise ValueError(
                f"micro_batch_tokens = {self.micro_batch_tokens} exceeds batch_tokens = {self.batch_tokens}, the "
                "whole step. Lower it, or leave it out to run a step at once."
            )
        return self

    @model_validator(mode="after")
    def teachers_can_learn(self) -> Self:
        """Refuse teachers whose schedule ends before it has risen, or that one model to begin with cannot begin."""
        if self.teacher_steps is None:
            return self
        if self.schedule == "cosine" and self.teacher_steps <= self.warmup_steps:
            raise ValueError(
                f"teacher_steps = {self.teacher_steps} ends the teachers' cosine before warmup_steps = "
                f"{self.warmup_steps} are over. Give them more steps."
            )
        if self.start_from is not None:
            raise ValueError(
                "teacher_steps and start_from exclude each other: there is no model to begin the backward teacher from."
            )
        return self

    @property
    def step_budget(self) -> int | None:
        """The last step, if steps or the end of the schedule bound it."""
        bounds = [bound for bound in (self.steps, self.decay_steps) if bound is not None]
        return min(bounds, default=None)

    @property
    def has_budget(self) -> bool:
        """Whether anything but validation ends training."""
        return self.step_budget is not None or self.epochs is not None or self.time is not None

    @property
    def allowed_patience(self) -> int | None:
        """How many validations without a better one are waited for, or None if training never ends early."""
        return self.patience or (None if self.has_budget else PATIENCE_WITHOUT_BUDGET)

    def trajectory(self) -> dict[str, JsonValue]:
        """Return the keys that decide where the weights go, which must not change between starts of a run.

        `precision` is not among them because "auto" means what the machine said: what was chosen is compared instead.
        """
        settings: dict[str, JsonValue] = self.model_dump(mode="json", exclude={*MAY_CHANGE_BETWEEN_STARTS, "precision"})
        if self.optimizer == "adam":
            del settings["optimizer"]  # a run that began before there was a choice goes on
        return settings
