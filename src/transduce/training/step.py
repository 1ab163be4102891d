"""One training step: forward and backward passes over its micro-batches, then one update of the weights.

The gradient of a step is the sum over all its target tokens, divided by their number:

    gradient = Σ_ranks Σ_micro-batches ∂loss/∂θ  /  Σ_ranks Σ_micro-batches tokens

So the number of micro-batches and the number of ranks change only the rounding.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch

from transduce.data.batch import Batch
from transduce.errors import ConfigError, TrainingError
from transduce.networks.network import Network
from transduce.training.arithmetic import Arithmetic
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.flat_parameters import FlatParameters
from transduce.training.gradient import gradient_of
from transduce.training.gradient_descent import Adadelta, GradientDescent, Nesterov
from transduce.training.loss import Loss
from transduce.training.muon import Muon
from transduce.training.optimization import Adam, learning_rate
from transduce.training.randomness import dropout_key

_OPTIMIZERS: Mapping[str, type[Adam]] = {
    "adam": Adam,
    "sgd": GradientDescent,
    "nesterov": Nesterov,
    "adadelta": Adadelta,
}


class StepCounts(NamedTuple):
    """Sums over the target tokens of a step, and votes; the ranks sum them together with their gradients."""

    tokens: float = 0.0
    """Target tokens."""
    objective: float = 0.0
    nll: float = 0.0
    correct: float = 0.0
    positions: float = 0.0
    """Target tokens and padding."""
    stops: float = 0.0
    """Ranks that received a request to stop."""
    overtimes: float = 0.0
    """Ranks whose clock has passed the time budget."""


@dataclass(frozen=True)
class StepReport:
    """The counts of a step over all ranks, its gradient norm, its learning rate and its duration."""

    counts: StepCounts
    gradient_norm: float
    rate: float
    seconds: float


class Stepper:
    """Takes training steps; holds the flat parameters, the optimizer, the schedule and the gradient."""

    def __init__(self, model: Network, config: TrainingConfig, *, arithmetic: Arithmetic, world: World) -> None:
        self.model, self.config, self.arithmetic, self.world = model, config, arithmetic, world
        _refuse_split_statistics(model, config, world=world)
        self.parameters = FlatParameters(model, tail=len(StepCounts._fields))
        self.optimizer = optimizer_of(
            model, self.parameters, config, product_dtype=arithmetic.product_dtype, world=world
        )
        self.rate = learning_rate(config, d_model=model.config.d_model)
        self.gradient = gradient_of(model, config, arithmetic=arithmetic)

    def take(self, step: int, batches: Iterable[Batch], *, votes: Callable[[], StepCounts] = StepCounts) -> StepReport:
        """Update the weights once; if loss or gradient is not finite, raise TrainingError and leave them unchanged.

        `votes` is called after the micro-batches: its counts, such as a request to stop, are summed with the gradients.
        """
        started, rate = time.perf_counter(), self.rate(step)
        self.model.train()
        self.parameters.zero_gradients()
        self.gradient.refresh()
        taken: list[tuple[Batch, Loss]] = []
        for index, batch in enumerate(batches):
            key = dropout_key(seed=self.config.seed, step=step, micro_batch=index, rank=self.world.rank)
            taken.append((batch, self.gradient.add(batch.to(self.arithmetic.device), dropout_key=key)))
        counts = self._sum_over_ranks(sum_of_counts([votes(), *(_counts(*pair) for pair in taken)]))
        norm = float(torch.linalg.vector_norm(self.parameters.gradients)) / counts.tokens
        if not (math.isfinite(norm) and math.isfinite(counts.objective)):
            raise TrainingError(_not_finite(step, taken, rate=rate, norm=norm))
        clip = self.config.clip_norm
        clipping = clip / norm if clip is not None and norm > clip else 1.0
        self.parameters.gradients.mul_(clipping / counts.tokens)
        self.optimizer.step(rate=rate)
        return StepReport(counts=counts, gradient_norm=norm, rate=rate, seconds=time.perf_counter() - started)

    def accumulate(self, batch: Batch) -> Loss:
        """Run one micro-batch forward and backward without an update, to measure its memory or time."""
        self.model.train()
        self.gradient.refresh()
        with self.kept_statistics():
            return self.gradient.add(batch.to(self.arithmetic.device), dropout_key=0)

    @contextmanager
    def kept_statistics(self) -> Iterator[None]:
        """Restore the model's running means after the block, so that a resumed run equals an uninterrupted one."""
        before = [(statistic, statistic.detach().clone()) for statistic in self.model.statistics()]
        yield
        for statistic, value in before:
            statistic.data.copy_(value)

    def _sum_over_ranks(self, counts: StepCounts) -> StepCounts:
        if self.world.size == 1:
            return counts
        tail = self.parameters.tail
        tail.copy_(torch.tensor(counts, dtype=tail.dtype))
        self.world.sum_(self.parameters.gradients_and_tail)
        return StepCounts(*tail.tolist())


def sum_of_counts(counts: Iterable[StepCounts]) -> StepCounts:
    """Return the sum of each count."""
    return StepCounts(*(sum(column) for column in zip(*counts, strict=True)))


def optimizer_of(
    model: Network,
    parameters: FlatParameters,
    config: TrainingConfig,
    *,
    product_dtype: torch.dtype | None = None,
    world: World | None = None,
) -> Adam:
    """Return the configured optimizer; Muon shares its products, in `product_dtype`, among the ranks of `world`."""
    if config.optimizer != "muon":
        return _OPTIMIZERS[config.optimizer](parameters, config)
    return Muon(parameters, config, matrices=tuple(model.matrices()), product_dtype=product_dtype, world=world)


def _refuse_split_statistics(model: Network, config: TrainingConfig, *, world: World) -> None:
    if any(True for _ in model.statistics()) and (world.size > 1 or config.micro_batch_tokens is not None):
        where = f"{world.size} ranks" if world.size > 1 else f"micro_batch_tokens = {config.micro_batch_tokens}"
        raise ConfigError(
            f'model.normalization = "batch" needs the whole batch of a step at once, but training has {where}. '
            "Train in one process without training.micro_batch_tokens (a smaller training.batch_tokens needs less "
            'memory), or set model.normalization = "layer".'
        )


def _counts(batch: Batch, loss: Loss) -> StepCounts:
    return StepCounts(
        tokens=loss.tokens,
        objective=float(loss.objective.detach()),
        nll=float(loss.nll),
        correct=float(loss.correct),
        positions=batch.target_BT.numel(),
    )


def _not_finite(step: int, taken: list[tuple[Batch, Loss]], *, rate: float, norm: float) -> str:
    diverged = [batch for batch, loss in taken if not math.isfinite(float(loss.objective.detach()))]
    batches = diverged or [batch for batch, _ in taken]
    sentences = [int(sentence) for batch in batches for sentence in batch.sentences]
    shown = ", ".join(str(sentence) for sentence in sentences[:8]) + (", …" if len(sentences) > 8 else "")
    what = "loss" if diverged else f"gradient (norm {norm})"
    return (
        f"The {what} of step {step:,} is not finite, at a learning rate of {rate:.2e}, in the batch of "
        f"{len(sentences)} training pairs {shown}. The step was not applied, and the newest checkpoint is intact. "
        "Begin a new run from it (--start-from) with a lower learning rate (training.scale or training.peak), more "
        'training.warmup_steps, training.clip_norm = 1.0, or training.precision = "float32".'
    )
