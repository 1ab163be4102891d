"""The other papers' optimizers against torch's, and their state in a checkpoint."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transduce.model import ModelConfig, Transformer
from transduce.training.config import TrainingConfig
from transduce.training.flat_parameters import FlatParameters
from transduce.training.step import optimizer_of

SETTINGS = {"sgd": {}, "nesterov": {"beta1": 0.9}, "adadelta": {"beta2": 0.95, "epsilon": 1e-6}}


def torch_optimizer(name: str, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    if name == "adadelta":
        return torch.optim.Adadelta(parameters, lr=0.3, rho=0.95, eps=1e-6)
    return torch.optim.SGD(parameters, lr=0.3, momentum=0.9 if name == "nesterov" else 0.0, nesterov=name == "nesterov")


@pytest.mark.parametrize("name", SETTINGS)
def test_it_takes_torchs_steps_also_after_its_state_is_restored(name: str) -> None:
    torch.manual_seed(2)
    config = TrainingConfig.model_validate({"optimizer": name, **SETTINGS[name]})
    network = Transformer(ModelConfig(vocabulary_size=11, d_model=8, layers=1, d_ff=8, heads=2)).double()
    twins = [nn.Parameter(parameter.detach().clone()) for parameter in network.parameters()]
    flat, theirs = FlatParameters(network), torch_optimizer(name, twins)
    ours = optimizer_of(network, flat, config)
    for step in range(6):
        for parameter, twin in zip(network.parameters(), twins, strict=True):
            twin.grad = torch.randn_like(twin)
            assert parameter.grad is not None
            parameter.grad.copy_(twin.grad)
        if step == 3:
            saved = {key: tensor.clone() for key, tensor in ours.state().items()}
            ours = optimizer_of(network, flat, config)
            ours.restore(saved, steps=step)
        ours.step(rate=0.3)
        theirs.step()
        assert_close(list(network.parameters()), twins)
