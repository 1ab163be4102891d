"""The two ways to a gradient agree, depend on the dropout key alone, and are chosen by what the network is."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from transduce.data.batch import Batch
from transduce.data.token_store import TokenStore
from transduce.model.transformer import Transformer
from transduce.training.arithmetic import Arithmetic
from transduce.training.batches import TrainingBatches
from transduce.training.config import TrainingConfig
from transduce.training.flat_parameters import FlatParameters
from transduce.training.gradient import AutogradGradient, Gradient, HandwrittenGradient, gradient_of

MakeModel = Callable[..., Transformer]
MakeConfig = Callable[..., TrainingConfig]
FLOAT32 = Arithmetic(torch.device("cpu"), "float32")


@pytest.fixture
def batch(store: TokenStore, make_config: MakeConfig) -> Batch:
    batches = TrainingBatches(store, make_config())
    return batches.batch(batches.steps(0)[0], epoch=0)


def added(gradient: Gradient, parameters: FlatParameters, batch: Batch, *, key: int) -> tuple[float, Tensor]:
    parameters.zero_gradients()
    gradient.refresh()
    loss = gradient.add(batch, dropout_key=key)
    return float(loss.objective.detach()), parameters.gradients.clone()


def test_what_the_network_is_chooses_the_way(make_model: MakeModel, make_config: MakeConfig) -> None:
    additive = Transformer(make_model().config.model_copy(update={"scores": "additive"}))
    for model, way in ((make_model(), HandwrittenGradient), (additive, AutogradGradient)):
        assert type(gradient_of(model, make_config(), arithmetic=FLOAT32)) is way


def test_both_ways_add_the_same_gradient(make_model: MakeModel, make_config: MakeConfig, batch: Batch) -> None:
    model = make_model(dropout=0.0).double()
    parameters, config = FlatParameters(model), make_config()
    handwritten = gradient_of(model, config, arithmetic=FLOAT32)
    assert isinstance(handwritten, HandwrittenGradient)
    loss, gradients = added(handwritten, parameters, batch, key=1)
    expected_loss, expected = added(AutogradGradient(model, config, arithmetic=FLOAT32), parameters, batch, key=1)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    torch.testing.assert_close(gradients, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_dropout_key_alone_decides_dropout(
    make_model: MakeModel, make_config: MakeConfig, batch: Batch, activation: str
) -> None:
    model = make_model(dropout=0.4, activation=activation)
    parameters = FlatParameters(model)
    gradient = gradient_of(model.train(), make_config(), arithmetic=FLOAT32)
    first, again, other = (added(gradient, parameters, batch, key=key) for key in (7, 7, 8))
    assert first[0] == again[0]
    assert torch.equal(first[1], again[1])
    assert first[0] != other[0]


def test_gradients_of_micro_batches_add_up(make_model: MakeModel, make_config: MakeConfig, batch: Batch) -> None:
    model = make_model(dropout=0.0).double()
    parameters = FlatParameters(model)
    gradient = gradient_of(model, make_config(), arithmetic=FLOAT32)
    _, once = added(gradient, parameters, batch, key=1)
    gradient.add(batch, dropout_key=2)
    torch.testing.assert_close(parameters.gradients, 2 * once)
    assert gradient.kept_for_backward(batch) > batch.target_BT.numel()
