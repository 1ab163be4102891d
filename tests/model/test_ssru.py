"""SSRU: two positions by hand, a loop in numpy, and the same states however the positions are divided."""

from collections.abc import Callable

import numpy as np
import torch
from torch.testing import assert_close

from transduce.model import ModelConfig
from transduce.model.ssru import SSRU


def test_two_positions_by_hand() -> None:
    ssru = SSRU(ModelConfig(d_model=2, heads=1))
    with torch.no_grad():
        ssru.W.weight.copy_(torch.tensor([[2.0, 0.0], [0.0, -1.0]]))
        ssru.W_f.weight.zero_()
        ssru.W_f.bias.copy_(torch.tensor([0.0, 3.0]).log1p())  # gates σ(log 1) = 1/2 and σ(log 4) = 4/5
    outputs_BTD, state_BD = ssru(torch.tensor([[[1.0, 5.0], [-3.0, -10.0]]]))
    # Candidates (2, -5) and (-6, 10). States: first (1, -1), then (½ · 1 - ½ · 6, ⅘ · -1 + ⅕ · 10) = (-2.5, 1.2).
    assert_close(outputs_BTD, torch.tensor([[[1.0, 0.0], [0.0, 1.2]]]))
    assert_close(state_BD, torch.tensor([[-2.5, 1.2]]))


def test_many_positions_against_a_loop_in_numpy(make_config: Callable[..., ModelConfig]) -> None:
    ssru = SSRU(make_config()).double()
    inputs_BTD = torch.randn(3, 29, 14).double() * 3
    W, W_f = (linear.weight.detach().numpy() for linear in (ssru.W, ssru.W_f))
    torch.nn.init.normal_(ssru.W_f.bias)
    b_f = ssru.W_f.bias.detach().numpy()
    for outputs_TD, inputs_TD in zip(ssru(inputs_BTD)[0].detach().numpy(), inputs_BTD.numpy(), strict=True):
        state = np.zeros(14)
        for t, x in enumerate(inputs_TD):
            gate = 1 / (1 + np.exp(-(W_f @ x + b_f)))
            state = gate * state + (1 - gate) * (W @ x)
            np.testing.assert_allclose(outputs_TD[t], np.maximum(state, 0), rtol=1e-12, atol=1e-14)


def test_a_state_continues_where_the_positions_before_it_ended(make_config: Callable[..., ModelConfig]) -> None:
    ssru = SSRU(make_config()).double()
    inputs_BTD = torch.randn(2, 13, 14).double()
    whole_BTD, last_BD = ssru(inputs_BTD)
    first_BTD, state_BD = ssru(inputs_BTD[:, :5])
    second_BTD, state_BD = ssru(inputs_BTD[:, 5:], state_BD)
    assert_close(torch.cat([first_BTD, second_BTD], dim=1), whole_BTD)
    assert_close(state_BD, last_BD)


@torch.no_grad()
def test_in_bf16_a_gate_near_one_still_lets_something_in() -> None:
    ssru = SSRU(ModelConfig(d_model=2, heads=1))
    with torch.no_grad():
        ssru.W.weight.copy_(torch.eye(2))
        ssru.W_f.weight.zero_()
        ssru.W_f.bias.fill_(7.0)  # σ(7) = 0.99909, which bf16 rounds to 1
    outputs_BTD, _ = ssru.bfloat16()(torch.ones(1, 1000, 2).bfloat16())
    assert outputs_BTD.dtype == torch.bfloat16
    assert abs(float(outputs_BTD[0, -1, 0]) - (1 - 0.99909**1000)) < 0.01
