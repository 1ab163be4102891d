"""Adam and the learning rate, section 5.3 of "Attention Is All You Need".

    lrate = d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5)              (equation 3)

"This corresponds to increasing the learning rate linearly for the first warmup_steps training steps, and decreasing
it thereafter proportionally to the inverse square root of the step number." Steps count from 1.

Every schedule is a pure function of the step, so a checkpoint holds no state of it.

Departures by name (`TrainingConfig.schedule`), each after a linear warm-up: the same decay from a chosen peak, half a
cosine, and a constant.
"""

import math
from collections.abc import Callable, Container, Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam

from transduce.errors import RunError
from transduce.training.config import TrainingConfig
from transduce.training.flat_parameters import FlatParameters, copy_by_name

LearningRate = Callable[[int], float]


def paper_rate(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Return equation 3 at `step`, counted from 1."""
    rate: float = d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
    return rate


def inverse_sqrt_rate(step: int, *, peak: float, warmup_steps: int) -> float:
    """Return a rate that rises to `peak` and decays with step^-0.5: equation 3 with a chosen peak."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * math.sqrt(max(warmup_steps, 1) / step)


def cosine_rate(step: int, *, peak: float, warmup_steps: int, decay_steps: int) -> float:
    """Return a rate that rises to `peak` and falls along half a cosine to 0 at `decay_steps`."""
    if step < warmup_steps:
        return peak * step / warmup_steps
    fraction = min(1.0, (step - warmup_steps) / (decay_steps - warmup_steps))
    return peak * 0.5 * (1.0 + math.cos(math.pi * fraction))


def constant_rate(step: int, *, peak: float, warmup_steps: int) -> float:
    """Return a rate that rises to `peak` and stays there."""
    return peak * min(1.0, step / max(warmup_steps, 1))


def learning_rate(config: TrainingConfig, *, d_model: int) -> LearningRate:
    """Return the configured schedule as a function of the step."""
    warmup, peak = config.warmup_steps, config.peak
    if config.schedule == "paper":
        return lambda step: config.scale * paper_rate(step, d_model=d_model, warmup_steps=warmup)
    assert peak is not None
    if config.schedule == "inverse_sqrt":
        return lambda step: inverse_sqrt_rate(step, peak=peak, warmup_steps=warmup)
    if config.schedule == "constant":
        return lambda step: constant_rate(step, peak=peak, warmup_steps=warmup)
    decay = config.decay_steps
    assert decay is not None
    return lambda step: cosine_rate(step, peak=peak, warmup_steps=warmup, decay_steps=decay)


class Adam:
    """Adam over flat parameters, with a state that is saved and restored by parameter name.

    It calls torch's Adam as a function. Constructing a `torch.optim.Optimizer` would import torch's compiler, which
    takes longer than the first steps of a small model.
    """

    def __init__(
        self, parameters: FlatParameters, config: TrainingConfig, *, only: Container[str] | None = None
    ) -> None:
        """Optimize all parameters as one vector, or only those named in `only`."""
        self.parameters, self.config = parameters, config
        self.mean, self.square = torch.zeros_like(parameters.values), torch.zeros_like(parameters.values)
        vectors = (parameters.values, parameters.gradients, self.mean, self.square)
        self._values, self._gradients, self._means, self._squares = (
            [vector] if only is None else [part for name, part in parameters.named_parts(vector) if name in only]
            for vector in vectors
        )
        self._steps = [torch.zeros((), dtype=torch.float32, device=parameters.values.device) for _ in self._values]

    def step(self, *, rate: float) -> None:
        """Update the parameters with their gradients at this learning rate."""
        adam(
            self._values,
            self._gradients,
            self._means,
            self._squares,
            [],
            self._steps,
            fused=True,
            amsgrad=False,
            beta1=self.config.beta1,
            beta2=self.config.beta2,
            lr=rate,
            weight_decay=0.0,
            eps=self.config.epsilon,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the two running means of every parameter, by name."""
        return {
            **{f"mean.{name}": tensor for name, tensor in self.parameters.named_parts(self.mean)},
            **{f"square.{name}": tensor for name, tensor in self.parameters.named_parts(self.square)},
        }

    def restore(self, state: Mapping[str, Tensor], *, steps: int) -> None:
        """Load a state that `state` returned after `steps` steps."""
        if not copy_by_name(state, into=self.state()):
            raise RunError("The optimizer state of the checkpoint belongs to a model of other sizes than this one.")
        self.count(steps)

    def count(self, steps: int) -> None:
        """Set the number of steps taken, on which Adam's bias correction depends."""
        for count in self._steps:
            count.fill_(steps)
