import math
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn

from transduce.errors import RunError
from transduce.training.config import TrainingConfig
from transduce.training.flat_parameters import FlatParameters
from transduce.training.optimization import Adam, cosine_rate, inverse_sqrt_rate, learning_rate, paper_rate

PAPER_RATES = [
    (512, 1, 1.746928107e-7),
    (512, 2, 3.493856215e-7),
    (512, 100, 1.746928107e-5),
    (512, 1000, 1.746928107e-4),
    (512, 3999, 6.985965502e-4),
    (512, 4000, 6.987712430e-4),
    (512, 4001, 6.986839129e-4),
    (512, 8000, 4.941058844e-4),
    (512, 16000, 3.493856215e-4),
    (512, 100_000, 1.397542486e-4),
    (1024, 1, 1.235264711e-7),
    (1024, 4000, 4.941058844e-4),
    (1024, 300_000, 5.705443307e-5),
]


@pytest.mark.parametrize(("d_model", "step", "expected"), PAPER_RATES)
def test_equation_3(d_model: int, step: int, expected: float) -> None:
    assert paper_rate(step, d_model=d_model, warmup_steps=4000) == pytest.approx(expected, rel=1e-9)
    assert learning_rate(TrainingConfig(), d_model=d_model)(step) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("step", "expected"), [(4000, 4.941058844e-4), (8000, 9.882117688e-4), (100_000, 2.795084972e-4)]
)
def test_the_authors_later_rate_is_twice_the_paper_s_with_a_longer_rise(step: int, expected: float) -> None:
    rate = learning_rate(TrainingConfig(scale=2.0, warmup_steps=8000), d_model=512)
    assert rate(step) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("step", [1, 7, 4000, 4001, 90_000])
def test_inverse_square_root_is_equation_3_with_a_chosen_peak(step: int) -> None:
    peak = paper_rate(4000, d_model=512, warmup_steps=4000)
    ours = inverse_sqrt_rate(step, peak=peak, warmup_steps=4000)
    assert ours == pytest.approx(paper_rate(step, d_model=512, warmup_steps=4000), rel=1e-12)


def test_half_a_cosine_by_hand() -> None:
    def rate(step: int) -> float:
        return cosine_rate(step, peak=8.0, warmup_steps=4, decay_steps=16)

    assert [rate(step) for step in (1, 2, 4)] == [2.0, 4.0, 8.0]
    assert rate(8) == pytest.approx(4.0 * (1.0 + math.sqrt(0.25)))  # a third of the way: cos 60° = 1/2
    assert rate(10) == pytest.approx(4.0)
    assert rate(16) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "cosine"])
def test_schedules_rise_to_their_peak_and_never_above(schedule: str) -> None:
    decay = {"decay_steps": 100} if schedule == "cosine" else {}
    config = TrainingConfig.model_validate({"schedule": schedule, "peak": 0.25, "warmup_steps": 10, **decay})
    rates = [learning_rate(config, d_model=512)(step) for step in range(1, 100)]
    assert rates[:10] == pytest.approx([0.025 * step for step in range(1, 11)])
    assert max(rates) == rates[9] == 0.25


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt"])
def test_a_schedule_may_do_without_a_rise(schedule: str) -> None:
    config = TrainingConfig.model_validate({"schedule": schedule, "peak": 0.25, "warmup_steps": 0})
    assert learning_rate(config, d_model=512)(1) == 0.25


def one_weight() -> tuple[nn.Linear, FlatParameters]:
    layer = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    nn.init.ones_(layer.weight)
    return layer, FlatParameters(layer)


def test_adam_by_hand() -> None:
    layer, parameters = one_weight()
    adam = Adam(parameters, TrainingConfig())
    rate = learning_rate(TrainingConfig(), d_model=512)
    parameters.gradients[0] = 0.5
    adam.step(rate=rate(1))
    assert layer.weight.item() == pytest.approx(0.9999998253071896, abs=1e-16)
    parameters.gradients[0] = -0.2
    adam.step(rate=rate(2))
    assert layer.weight.item() == pytest.approx(0.9999997041353782, abs=1e-16)
    state = adam.state()
    assert (state["mean.weight"].item(), state["square.weight"].item()) == pytest.approx((0.025, 0.0057))


def test_a_restored_adam_goes_on_to_the_bit() -> None:
    def go(adam: Adam, parameters: FlatParameters, gradients: list[float]) -> None:
        for gradient in gradients:
            parameters.gradients[0] = gradient
            adam.step(rate=0.01)

    layer, parameters = one_weight()
    adam = Adam(parameters, TrainingConfig())
    go(adam, parameters, [0.3, -0.7, 0.1])
    saved_weight, saved = layer.weight.detach().clone(), {name: t.clone() for name, t in adam.state().items()}
    go(adam, parameters, [0.9, 0.2])

    other_layer, other_parameters = one_weight()
    other = Adam(other_parameters, TrainingConfig())
    other_layer.weight.data.copy_(saved_weight)
    other.restore(saved, steps=3)
    go(other, other_parameters, [0.9, 0.2])
    assert other_layer.weight.item() == layer.weight.item()


def test_the_optimizer_of_another_model_is_refused(make_model: Callable[..., nn.Module]) -> None:
    _, parameters = one_weight()
    adam = Adam(FlatParameters(make_model()), TrainingConfig())
    with pytest.raises(RunError, match="other sizes"):
        adam.restore(Adam(parameters, TrainingConfig()).state(), steps=1)


def test_the_first_step_does_not_wait_for_torch_s_compiler() -> None:
    program = (
        "import sys, torch\n"
        "from transduce.training.config import TrainingConfig\n"
        "from transduce.training.flat_parameters import FlatParameters\n"
        "from transduce.training.optimization import Adam\n"
        "parameters = FlatParameters(torch.nn.Linear(3, 5))\n"
        "Adam(parameters, TrainingConfig()).step(rate=0.1)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
