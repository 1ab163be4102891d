"""Section 3.3: FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, at each position by itself."""

import math
from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from transduce.model import ModelConfig
from transduce.model.feed_forward import FeedForward


def test_two_vectors_by_hand() -> None:
    ffn = FeedForward(ModelConfig(d_model=2, d_ff=3, heads=1))
    with torch.no_grad():
        ffn.W_1.weight.copy_(torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, 2.0]]).T)
        ffn.W_1.bias.copy_(torch.tensor([0.0, 0.5, -1.0]))
        ffn.W_2.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).T)
        ffn.W_2.bias.copy_(torch.tensor([0.1, -0.1]))
    # [1, 2]: inner [1, 1.5, 3]. [-1, 0.25]: inner [-1, 1.75, -0.5], of which max(0, ·) leaves the middle.
    assert_close(ffn(torch.tensor([[[1.0, 2.0], [-1.0, 0.25]]])), torch.tensor([[[4.1, 4.4], [0.1, 1.65]]]))


def test_a_position_does_not_depend_on_its_neighbours(make_config: Callable[..., ModelConfig]) -> None:
    ffn = FeedForward(make_config()).double()
    inputs_BTD = torch.randn(2, 11, 14, dtype=torch.float64)
    alone_BTD = torch.cat([ffn(inputs_BTD[:, t : t + 1]) for t in range(11)], dim=1)
    assert_close(ffn(inputs_BTD), alone_BTD)


def test_gelu_is_x_times_the_normal_distribution_function(make_config: Callable[..., ModelConfig]) -> None:
    ffn = FeedForward(make_config(activation="gelu")).double()
    inner_BTF = ffn.W_1(torch.randn(2, 3, 14, dtype=torch.float64))
    normal = torch.distributions.Normal(0.0, 1.0)
    assert_close(ffn.activation(inner_BTF), inner_BTF * normal.cdf(inner_BTF))


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_sigmoid", "silu"])
def test_other_activations_are_their_formulas(make_config: Callable[..., ModelConfig], activation: str) -> None:
    x = torch.linspace(-7.0, 7.0, 41, dtype=torch.float64)
    formulas = {
        "gelu_tanh": 0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh()),
        "gelu_sigmoid": x / (1 + (-1.702 * x).exp()),
        "silu": x / (1 + (-x).exp()),
    }
    assert_close(FeedForward(make_config(activation=activation)).activation(x), formulas[activation])


def test_dropout_falls_on_the_inner_layer_in_training_only(make_config: Callable[..., ModelConfig]) -> None:
    ffn = FeedForward(make_config(d_ff=1009, feed_forward_dropout=0.5))
    inputs_BTD = torch.randn(2, 3, 14)
    zeros: list[float] = []
    ffn.W_2.register_forward_pre_hook(lambda _, inputs: zeros.append(float((inputs[0] == 0).float().mean())))
    ffn(inputs_BTD)
    ffn.eval()
    ffn(inputs_BTD)
    assert 0.70 < zeros[0] < 0.80  # half by max(0, ·), half of the rest by dropout
    assert 0.40 < zeros[1] < 0.60
