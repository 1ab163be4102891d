from collections.abc import Callable

import torch

from transduce.model.transformer import Transformer
from transduce.training.flat_parameters import FlatParameters

SOURCE_BS, TARGET_BT = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[8, 9, 3]])


def test_flattening_changes_neither_outputs_nor_gradients(make_model: Callable[..., Transformer]) -> None:
    plain, flat = make_model(dropout=0.0), make_model(dropout=0.0)
    parameters = FlatParameters(flat)
    outputs = []
    for model in (plain, flat):
        hidden_BTD = model(SOURCE_BS, TARGET_BT)
        hidden_BTD.square().sum().backward()
        outputs.append(hidden_BTD)
    assert torch.equal(outputs[0], outputs[1])
    for (name, expected), (other_name, part) in zip(
        plain.named_parameters(), parameters.named_parts(parameters.gradients), strict=True
    ):
        assert name == other_name
        assert expected.grad is not None
        assert torch.equal(expected.grad, part)


def test_gradients_add_up_in_place_until_they_are_zeroed(make_model: Callable[..., Transformer]) -> None:
    model = make_model(dropout=0.0)
    parameters = FlatParameters(model, tail=3)
    model(SOURCE_BS, TARGET_BT).square().sum().backward()
    once = parameters.gradients.clone()
    assert once.abs().sum() > 0
    model(SOURCE_BS, TARGET_BT).square().sum().backward()
    torch.testing.assert_close(parameters.gradients, 2 * once)
    parameters.zero_gradients()
    assert not parameters.gradients_and_tail.any()


def test_a_change_of_the_vector_is_a_change_of_the_model(make_model: Callable[..., Transformer]) -> None:
    model = make_model()
    parameters = FlatParameters(model)
    parameters.values.fill_(0.5)
    assert all(bool((parameter == 0.5).all()) for parameter in model.parameters())
    assert parameters.count == sum(parameter.numel() for parameter in model.parameters())
