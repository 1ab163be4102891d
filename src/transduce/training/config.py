"""Training settings: the values of section 5 of "Attention Is All You Need" and the checkpoints of 6.1, with units.

`TrainingConfig()` is the recipe of the paper's base model without its number of steps. Without a budget of steps,
epochs or time, training ends when validation stops improving.

A run can be resumed many times. Some keys may change between its starts (budgets, intervals, logging, patience), since
they do not affect the weights of a step. All others do, and a resume with another value raises an error.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
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

REMOVED = {"r_drop": 0.0}
"""Settings of earlier versions at the values that all runs now have; checkpoints and hashes hold them."""

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


def is_duration(text: str) -> bool:
    """Return whether the text is a duration such as 90s or 1h30m."""
    return re.fullmatch(r"(\d+(\.\d+)?[smhd])+", text) is not None


def seconds(duration: str) -> float:
    """Return a duration such as "90s", "10m", "2h" or "1h30m" in seconds."""
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _DURATION.findall(duration))


class TrainingConfig(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Settings of training. The defaults are the paper's base model, without its 100,000 steps."""

    steps: PositiveInt | None = None
    """Stop after this many steps; 100,000 for the base model and 300,000 for the big one. [steps] (5.2)"""
    epochs: PositiveInt | None = None
    """Stop after this many passes over the corpus. [epochs]"""
    time: Duration | None = None
    """Stop after this much training time, such as "2h" or "1h30m", summed over all starts of the run and without the
    training of teachers. [time]
    """
    patience: PositiveInt | None = None
    """Stop after this many validations in a row without a new best. Unless given: 10 without a budget of steps, epochs
    or time; with a budget, training uses all of it. [validations]
    """

    seed: NonNegativeInt = 1
    """Seed of all randomness: initial weights, order of batches, dropout, BPE-dropout."""
    start_from: str | None = None
    """A model directory to take the initial weights and the tokenizer from; the optimizer starts fresh. [folder]"""

    batch_tokens: PositiveInt = 25_000
    """Source tokens and, likewise, target tokens of one step, over all ranks and micro-batches. [tokens] (5.1)"""
    micro_batch_tokens: PositiveInt | None = None
    """Tokens of one forward and backward pass; a step sums the gradients of its micro-batches. Fewer tokens need less
    memory. Unless given, a rank runs its share of a step at once. [tokens]
    """

    schedule: Literal["paper", "inverse_sqrt", "cosine", "constant"] = "paper"
    """Schedule of the learning rate: `paper` is equation 3, d_model^-0.5 · min(step^-0.5, step · warmup^-1.5). The
    others rise linearly to `peak`; then `inverse_sqrt` decays with step^-0.5, `cosine` along half a cosine, and
    `constant` stays. (5.3)
    """
    warmup_steps: NonNegativeInt = 4000
    """Steps over which the learning rate rises. [steps] (5.3)"""
    scale: PositiveFloat = 1.0
    """Factor on the learning rate of schedule `paper`; 1 is the paper's. (5.3)"""
    peak: PositiveFloat | None = None
    """Highest learning rate; required by every schedule except `paper`, which does not use it."""
    decay_steps: PositiveInt | None = None
    """Step at which schedule `cosine` reaches 0 and training ends; required by `cosine` alone. [steps]"""

    optimizer: Literal["adam", "muon", "sgd", "nesterov", "adadelta"] = "adam"
    """`adam`, or `muon` for the matrices of the layers and Adam for the rest. Muon's steps are equally long in every
    direction of a matrix. Departure: Jordan et al. 2024. `sgd`, `nesterov` and `adadelta` are those of the papers
    that the paper compares itself with. (5.3)
    """
    beta1: Share = 0.9
    """Adam's decay of the mean of gradients; the momentum of `nesterov`. (5.3)"""
    beta2: Share = 0.98
    """Adam's decay of the mean of squared gradients; the decay of `adadelta`. (5.3)"""
    epsilon: PositiveFloat = 1e-9
    """Number that Adam adds to its denominator, and `adadelta` to its two means. (5.3)"""
    clip_norm: PositiveFloat | None = None
    """Scale the gradient of a step down to this Euclidean norm if it is longer. The paper does not clip."""

    label_smoothing: Share = 0.1
    """ε_ls, the share of probability taken from the true token. (5.4)"""
    smoothing: Literal["szegedy", "authors"] = "szegedy"
    """Tokens that receive that share: with `szegedy`, the work that the paper cites, the whole vocabulary; with
    `authors`, their code, all tokens except the true one. They differ by a factor of (V - 1) / V in ε. (5.4)
    """
    bpe_dropout: Share = 0.0
    """Probability of dropping a BPE merge when a training sentence is tokenised, drawn again in every epoch; 0 is off.
    Departure: Provilkov et al. 2020.
    """
    teacher_steps: PositiveInt | None = None
    """First train two teachers, networks of the same sizes, for this many steps each: one translates the sources of the
    training text, the other, trained backwards, its targets. Training then learns from three times as many pairs. Off
    unless given. Departure: data diversification, Nguyen et al. 2020. [steps]
    """

    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Precision of matrix products; weights, optimizer and reductions stay in float32. `auto` is bf16 if the processor
    multiplies bf16 natively; a resumed run keeps the precision it began with.
    """
    threads: PositiveInt | None = None
    """Number of threads. Unless given: all available cores; a resumed run keeps its number, since another one rounds
    differently. [threads]
    """

    checkpoint_every: PositiveInt | Duration = "10m"
    """Interval between checkpoints, as a number of steps or as a time such as "10m". [steps or time] (6.1)"""
    keep_checkpoints: PositiveInt = 5
    """Number of newest checkpoints to keep on the disk, besides the best one. [checkpoints]"""
    average_last: PositiveInt = 5
    """Number of newest checkpoints that the finished model averages; 20 for the big model. [checkpoints] (6.1)"""
    validate_every: PositiveInt = 1000
    """Interval between validations. [steps]"""
    best_by: Literal["loss", "bleu"] = "loss"
    """Measure that decides which validation is the best."""
    shortlist: NonNegativeInt = 0
    """Number of likely target tokens to learn for each source token, for `decoding.shortlist`; 0 is off, 50 is enough.
    Departure. [tokens]
    """
    report_every: PositiveInt = 50
    """Interval between lines of metrics. [steps]"""
    tensorboard: bool = True
    """Write TensorBoard events besides metrics.jsonl."""
    rank_timeout: Duration = "10m"
    """How long a rank waits for an answer of the others before it ends with an error. [time]"""

    @model_validator(mode="after")
    def schedule_has_what_it_needs(self) -> Self:
        """Reject a schedule that lacks a setting, and settings that the schedule would ignore."""
        if self.schedule == "paper":
            if self.peak is not None:
                raise ValueError(
                    f'peak = {self.peak:g} has no effect on schedule = "paper", whose rate follows from d_model and '
                    'warmup_steps. Set scale instead, or choose schedule = "inverse_sqrt".'
                )
            if self.warmup_steps == 0:
                raise ValueError(
                    'schedule = "paper" needs warmup_steps of at least 1. Set it to 4000, as in the paper.'
                )
        else:
            if self.peak is None:
                raise ValueError(
                    f'schedule = "{self.schedule}" needs peak, its highest learning rate, such as peak = 5e-4.'
                )
            if self.scale != 1.0:
                raise ValueError(
                    f'scale = {self.scale:g} has no effect on schedule = "{self.schedule}". Multiply peak instead.'
                )
        if self.schedule == "cosine" and (self.decay_steps is None or self.decay_steps <= self.warmup_steps):
            raise ValueError(
                f'schedule = "cosine" needs decay_steps, the step at which it reaches 0, to be more than warmup_steps '
                f"= {self.warmup_steps}; it is {self.decay_steps}."
            )
        if self.schedule != "cosine" and self.decay_steps is not None:
            raise ValueError(
                f'decay_steps = {self.decay_steps} has no effect on schedule = "{self.schedule}". Remove it, or choose '
                'schedule = "cosine".'
            )
        return self

    @model_validator(mode="after")
    def averages_what_is_kept(self) -> Self:
        """Reject averaging more checkpoints than are kept."""
        if self.average_last > self.keep_checkpoints:
            raise ValueError(
                f"average_last = {self.average_last} checkpoints cannot be averaged when keep_checkpoints = "
                f"{self.keep_checkpoints}. Keep at least {self.average_last}."
            )
        return self

    @model_validator(mode="after")
    def micro_batch_is_a_part(self) -> Self:
        """Reject a micro-batch larger than its step."""
        if self.micro_batch_tokens is not None and self.micro_batch_tokens > self.batch_tokens:
            raise ValueError(
                f"micro_batch_tokens = {self.micro_batch_tokens} exceeds batch_tokens = {self.batch_tokens}, the size "
                "of a step. Lower it, or leave it out to run a step at once."
            )
        return self

    @model_validator(mode="after")
    def teachers_can_learn(self) -> Self:
        """Reject teachers whose schedule ends within its warm-up, and teachers together with `start_from`."""
        if self.teacher_steps is None:
            return self
        if self.schedule == "cosine" and self.teacher_steps <= self.warmup_steps:
            raise ValueError(
                f"teacher_steps = {self.teacher_steps} ends the teachers' cosine schedule before warmup_steps = "
                f"{self.warmup_steps} are over. Give them more steps, or set fewer warmup_steps."
            )
        if self.start_from is not None:
            raise ValueError(
                "teacher_steps and start_from exclude each other: the backward teacher has no model to start from. "
                "Remove one of them."
            )
        return self

    @property
    def step_budget(self) -> int | None:
        """The last step, if `steps` or the end of the schedule sets one."""
        bounds = [bound for bound in (self.steps, self.decay_steps) if bound is not None]
        return min(bounds, default=None)

    @property
    def has_budget(self) -> bool:
        """Whether steps, epochs or time end training."""
        return self.step_budget is not None or self.epochs is not None or self.time is not None

    @property
    def allowed_patience(self) -> int | None:
        """The number of validations without a new best that ends training, or None if they never do."""
        return self.patience or (None if self.has_budget else PATIENCE_WITHOUT_BUDGET)

    def trajectory(self) -> dict[str, JsonValue]:
        """Return the settings that determine the weights and must not change between starts of a run.

        `precision` is left out, since "auto" depends on the machine; the trainer compares the chosen precision instead.
        """
        settings: dict[str, JsonValue] = self.model_dump(mode="json", exclude={*MAY_CHANGE_BETWEEN_STARTS, "precision"})
        settings |= REMOVED
        if self.optimizer == "adam":
            del settings["optimizer"]  # so that a run of a version without this setting can be resumed
        return settings
