"""The language model with the handwritten gradient against the plain one, whose gradient is autograd's."""

import pytest
import torch
from tests.backpropagation.test_network import gradients, padded

from transduce.backpropagation import HandwrittenLanguageModel
from transduce.backpropagation.dropout import KeyedDropout
from transduce.model.language_model import LanguageModel
from transduce.model.language_model_config import LanguageModelConfig

SIZES = {"vocabulary_size": 31, "layers": 2, "d_model": 14, "heads": 7, "dropout": 0.0, "learned_positions": 29}


def make_model(**changes: object) -> LanguageModel:
    torch.manual_seed(1706_03762)
    model = LanguageModel(LanguageModelConfig.model_validate(SIZES | changes)).double()
    for parameter in model.parameters():  # so that no bias is 0 and no gain 1
        parameter.data = torch.randn_like(parameter) * 0.3
        parameter.grad = torch.zeros_like(parameter)
    return model


@pytest.mark.parametrize("prompts", [[1, 1, 1], [2, 5, 1], [4, 4, 4]], ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "post", "positions": "sinusoidal"}, {"tied": False, "attention_bias": False, "positions": "none"}],
    ids=str,
)
def test_hidden_states_and_gradients_are_those_that_torch_derives(
    options: dict[str, object], prompts: list[int]
) -> None:
    model = make_model(**options)
    source_BS, target_BT = padded(prompts), padded([5, 19, 3])
    expected_ND = model(source_BS, target_BT)[target_BT != 0]
    gradient_ND = torch.randn_like(expected_ND)
    expected_ND.backward(gradient_ND)
    expected = gradients(model)

    network = HandwrittenLanguageModel(model, dtype=torch.float64)
    network.refresh()
    run = network.forward(source_BS, target_BT, dropout=KeyedDropout(1))
    torch.testing.assert_close(run.hidden_ND, expected_ND.detach())
    run.backward(gradient_ND)
    for name, gradient in gradients(model).items():
        assert torch.allclose(gradient, expected[name], rtol=1e-7, atol=1e-12), name
