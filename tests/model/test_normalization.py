"""Batch normalisation: torch's as oracle, padding, running means, and what training refuses."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transduce.errors import ConfigError
from transduce.model.config import ModelConfig
from transduce.model.normalization import MaskedBatchNorm
from transduce.model.transformer import Transformer
from transduce.training.arithmetic import Arithmetic
from transduce.training.config import TrainingConfig
from transduce.training.distributed import World
from transduce.training.step import Stepper


def test_it_equals_torchs_over_the_positions_that_hold_a_token() -> None:
    torch.manual_seed(3)
    ours, theirs = MaskedBatchNorm(5, epsilon=1e-5).double(), nn.BatchNorm1d(5, eps=1e-5).double()
    with torch.no_grad():
        ours.weight.copy_(nn.init.normal_(theirs.weight))
        ours.bias.copy_(nn.init.normal_(theirs.bias))
    x_BTD = torch.randn(3, 4, 5, dtype=torch.float64)
    present_BT = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False]])
    assert_close(ours(x_BTD, present_BT)[present_BT], theirs(x_BTD[present_BT]))
    assert theirs.running_mean is not None
    assert theirs.running_var is not None
    assert_close(ours.mean_D.data, theirs.running_mean)
    assert_close((ours.variance_D.data - 0.9) * 7 / 6 + 0.9, theirs.running_var)  # torch keeps the unbiased variance
    with torch.no_grad():
        theirs.running_var.copy_(ours.variance_D)
    assert_close(ours.eval()(x_BTD).flatten(0, 1), theirs.eval()(x_BTD.flatten(0, 1)))


def network() -> Transformer:
    torch.manual_seed(3)
    sizes = {"vocabulary_size": 29, "d_model": 12, "layers": 1, "d_ff": 8, "heads": 3, "dropout": 0.0, "norm": "pre"}
    return Transformer(ModelConfig.model_validate({**sizes, "normalization": "batch"})).double()


def test_padding_changes_neither_outputs_nor_running_means() -> None:
    alone, padded = network(), network()
    source_BS, target_BT = torch.randint(4, 29, (2, 5)), torch.randint(4, 29, (2, 4))
    found = alone(source_BS, target_BT)
    with_padding = padded(*(nn.functional.pad(each, (0, 3)) for each in (source_BS, target_BT)))
    assert_close(with_padding[:, :4], found)
    assert_close(list(padded.statistics()), list(alone.statistics()))
    assert not torch.allclose(next(iter(alone.statistics())), torch.zeros(12).double())


def test_an_optimizer_and_a_trial_pass_leave_running_means_alone() -> None:
    model = network()
    world, arithmetic = World(), Arithmetic(torch.device("cpu"), "float32")
    stepper = Stepper(model, TrainingConfig(), arithmetic=arithmetic, world=world)
    before = [statistic.clone() for statistic in model.statistics()]
    with stepper.kept_statistics():
        model(torch.randint(4, 29, (2, 5)), torch.randint(4, 29, (2, 4))).sum().backward()
    stepper.optimizer.step(rate=0.1)
    assert all(torch.equal(*pair) for pair in zip(before, model.statistics(), strict=True))
    assert not torch.equal(model.embeddings.source_VD, network().embeddings.source_VD)


def test_training_refuses_what_would_split_a_batch() -> None:
    config, arithmetic = (
        TrainingConfig(batch_tokens=90, micro_batch_tokens=30),
        Arithmetic(torch.device("cpu"), "float32"),
    )
    with pytest.raises(
        ConfigError, match="needs the whole batch of a step at once, but training has micro_batch_tokens = 30"
    ):
        Stepper(network(), config, arithmetic=arithmetic, world=World())
    with pytest.raises(ConfigError, match="but training has 2 ranks"):
        Stepper(network(), TrainingConfig(), arithmetic=arithmetic, world=World(rank=0, size=2))
