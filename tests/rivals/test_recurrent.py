"""Recurrent units by hand and against torch's; the recurrent networks' parameters by formula."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transduce.architectures import CONFIGS
from transduce.networks.cost import parameter_count
from transduce.rivals.gnmt_config import GnmtConfig
from transduce.rivals.lstm import LstmNetwork
from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.luong import LuongNetwork
from transduce.rivals.luong_config import LuongConfig
from transduce.rivals.recurrent import LstmStack, LstmUnit
from transduce.torch_networks import NETWORKS


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_an_lstm_by_hand() -> None:
    unit = LstmUnit(1, 1).double()
    with torch.no_grad():
        unit.input.weight.copy_(torch.tensor([[1.0], [2.0], [0.5], [-1.0]]))  # i, f, o, g
        unit.input.bias.copy_(torch.tensor([0.125, 1.0, -0.25, 0.375]))
        unit.gates.weight.copy_(torch.tensor([[0.5], [-1.0], [2.0], [0.25]]))
    x, h, c = 0.3, 0.4, -0.6
    i, f = sigmoid(x + 0.125 + 0.5 * h), sigmoid(2 * x + 1.0 - h)
    o, g = sigmoid(0.5 * x - 0.25 + 2 * h), math.tanh(-x + 0.375 + 0.25 * h)
    cell = f * c + i * g
    state = torch.tensor([[[h, c]]], dtype=torch.float64)
    found = unit(unit.input(torch.tensor([[[x]]], dtype=torch.float64)), state)[0, 0].tolist()
    assert found == pytest.approx([o * math.tanh(cell), cell], abs=1e-12)


def test_a_stack_equals_that_of_torch_with_the_same_weights() -> None:
    torch.manual_seed(5)
    ours = LstmStack(7, 11, layers=3, dropout=0.0).double()
    theirs = nn.LSTM(7, 11, num_layers=3, batch_first=True).double()
    order = [0, 1, 3, 2]  # ours are i, f, o, g; torch's i, f, g, o
    with torch.no_grad():
        for layer, unit in enumerate(ours.units):
            assert isinstance(unit, LstmUnit)
            for name, tensor in (("weight_ih", unit.input.weight), ("weight_hh", unit.gates.weight)):
                blocks = tensor.view(4, 11, -1)[order]
                getattr(theirs, f"{name}_l{layer}").copy_(blocks.flatten(end_dim=1))
            getattr(theirs, f"bias_ih_l{layer}").copy_(unit.input.bias.view(4, 11)[order].flatten())
            getattr(theirs, f"bias_hh_l{layer}").zero_()
    inputs_BTE = torch.randn(3, 6, 7, dtype=torch.float64)
    expected_BTD, (hidden_LBD, cell_LBD) = theirs(inputs_BTE)
    found_BTD, lasts = ours(inputs_BTE)
    assert_close(found_BTD, expected_BTD)
    assert_close(torch.cat(lasts, dim=1).transpose(0, 1), torch.cat([hidden_LBD, cell_LBD], dim=-1))
    # Padding freezes the state: the last state of a shorter sentence is that of torch without the padding.
    visible_BT = torch.tensor([[True] * 4 + [False] * 2] * 3)
    assert_close(ours(inputs_BTE, visible_BT=visible_BT)[1], ours(inputs_BTE[:, :4])[1])


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_order_of_the_source_is_the_one_asked_for(is_reversed: bool) -> None:
    torch.manual_seed(3)
    config = LstmConfig(vocabulary_size=23, d_model=5, layers=2, reversed_source=is_reversed)
    network = LstmNetwork(config).double()
    source = [5, 9, 12, 3]
    read = source[::-1] if is_reversed else source
    _, lasts = network.encoder(network.matrix.source_VE[torch.tensor([read])])
    assert_close(network.start(torch.tensor([[*source, 0, 0]])).beams, lasts)


def lstm_layer(inputs: int, d: int) -> int:
    return 4 * (inputs * d + d * d + d)


@pytest.mark.parametrize("kind", ["lstm", "rnnsearch", "luong", "gnmt"])
def test_the_sizes_of_the_papers_are_the_defaults(kind: str) -> None:
    config = CONFIGS[kind].model_validate({})
    assert config.d_model == {"gnmt": 1024}.get(kind, 1000)
    assert config.model_dump().get("layers") == {"lstm": 4, "luong": 4, "gnmt": 8}.get(kind)


def test_parameters_by_the_formula() -> None:
    v, d, a = 8000, 376, 48
    assert parameter_count(LstmConfig(vocabulary_size=v, d_model=d, layers=2, tied="all")) == v * d + 4 * lstm_layer(
        d, d
    )
    luong = LuongConfig(vocabulary_size=v, d_model=d, layers=3)
    stacks, feeding, general, combining = 6 * lstm_layer(d, d), 4 * d * d, d * d, 2 * d * d
    assert parameter_count(luong) == 3 * v * d + stacks + feeding + general + combining
    concat = luong.model_copy(update={"scores": "concat", "input_feeding": False})
    assert parameter_count(concat) == 3 * v * d + stacks + 2 * d * d + d + combining
    assert parameter_count(luong.model_copy(update={"scores": "dot"})) == 3 * v * d + stacks + feeding + combining
    gnmt = GnmtConfig(vocabulary_size=v, d_model=d, layers=4, alignment_width=a, tied="inputs")
    readers = 2 * lstm_layer(d, d) + lstm_layer(2 * d, d) + 2 * lstm_layer(d, d)
    assert parameter_count(gnmt) == 2 * v * d + readers + 2 * d * a + a + 4 * lstm_layer(2 * d, d)


def test_luong_reads_the_attentional_vector_of_the_position_before() -> None:
    torch.manual_seed(3)
    network = LuongNetwork(LuongConfig(vocabulary_size=23, d_model=5, layers=1)).double()
    state = network.start(torch.tensor([[5, 9, 3]]))
    (values_BSD, keys_BSD, _), hidden_B1D = state.sentences, state.beams[0][..., :5]
    feeding = torch.zeros(1, 1, 5, dtype=torch.float64)
    unit, now = network.decoder.units[0], state.beams[0]
    for token in (2, 7, 11):
        embedded = network.matrix.target_VE[torch.tensor([[token]])]
        now = unit(unit.input(embedded) + network.feeding(feeding), now)  # type: ignore[operator]
        hidden_B1D = now[..., :5]
        weights = (hidden_B1D @ keys_BSD.mT).softmax(dim=-1)
        feeding = network.W_c(torch.cat([weights @ values_BSD, hidden_B1D], dim=-1)).tanh()
        assert_close(network.advance(state, torch.tensor([[token]])), feeding)


@pytest.mark.parametrize(("kind", "bound"), [("lstm", 0.08), ("luong", 0.1), ("gnmt", 0.04)])
def test_the_papers_weights_are_uniform(kind: str, bound: float) -> None:
    torch.manual_seed(1)
    config, network = CONFIGS[kind], NETWORKS[kind]
    made = network(config.model_validate({"vocabulary_size": 50, "d_model": 32, "initialization": "paper"}))
    values = torch.cat([parameter.detach().flatten() for parameter in made.parameters()])
    assert float(values.abs().max()) == pytest.approx(bound, rel=0.01)
    assert float(values.std()) == pytest.approx(bound / math.sqrt(3), rel=0.02)
