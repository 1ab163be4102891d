"""ConvS2S, ByteNet and the Extended Neural GPU: cells by hand, torch as oracle, parameters by formula."""

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.testing import assert_close

from transduce.errors import DataError
from transduce.networks.cost import parameter_count
from transduce.rivals.bytenet import ByteNet, DilatedBlock
from transduce.rivals.bytenet_config import ByteNetConfig
from transduce.rivals.convolutions import Convolution, windows
from transduce.rivals.convs2s import ConvS2S, GatedLayer
from transduce.rivals.convs2s_config import ConvS2SConfig
from transduce.rivals.neural_gpu import GatedConvolution, NeuralGpu
from transduce.rivals.neural_gpu_config import NeuralGpuConfig


@pytest.mark.parametrize("side", ["causal", "centred"])
def test_a_gated_layer_equals_torchs_convolution_with_its_weight_norm(side: str) -> None:
    torch.manual_seed(3)
    layer = GatedLayer(5, 7, kernel=3, dropout=0.0).double()
    nn.init.uniform_(layer.convolution.g, 0.5, 2.0)
    theirs = parametrizations.weight_norm(nn.Conv1d(5, 14, 3).double())
    with torch.no_grad():
        theirs.parametrizations.weight.original0.copy_(layer.convolution.g[:, None, None])
        theirs.parametrizations.weight.original1.copy_(layer.convolution.v.view(14, 3, 5).mT)
        nn.init.normal_(layer.convolution.bias)
        assert theirs.bias is not None
        theirs.bias.copy_(layer.convolution.bias)
    x_BTD = torch.randn(2, 6, 5, dtype=torch.float64)
    padded = functional.pad(x_BTD.mT, (2, 0) if side == "causal" else (1, 1))
    assert_close(layer(x_BTD, side=side), functional.glu(theirs(padded), dim=1).mT)


def test_a_gate_by_hand() -> None:
    layer = GatedLayer(1, 1, kernel=2, dropout=0.0).double()
    with torch.no_grad():
        layer.convolution.v.copy_(torch.tensor([[3.0, 4.0], [1.0, 0.0]]))
        layer.convolution.g.copy_(torch.tensor([10.0, 2.0]))  # so w is (6, 8) and (2, 0)
        layer.convolution.bias.copy_(torch.tensor([0.5, -1.0]))
    found = layer(torch.tensor([[[0.25], [0.5]]], dtype=torch.float64), side="causal")[0, :, 0].tolist()
    first, second = 8 * 0.25 + 0.5, 6 * 0.25 + 8 * 0.5 + 0.5
    gates = 1 / (1 + math.exp(1.0)), 1 / (1 + math.exp(-(2 * 0.25 - 1.0)))
    assert found == pytest.approx([first * gates[0], second * gates[1]], abs=1e-12)


def convs2s(**changes: object) -> ConvS2SConfig:
    sizes = {"vocabulary_size": 23, "d_model": 6, "output_width": 5, "positions": 11, "dropout": 0.0}
    layers = {"encoder": ((4, 3), (8, 3)), "decoder": ((4, 3),)}
    return ConvS2SConfig.model_validate({**sizes, **layers, **changes})


def test_convs2s_parameters_by_the_formula() -> None:
    v, e, o, positions = 23, 6, 5, 11
    encoder = (e * 4 + 2 * 4) + (8 * 3 * 4 + 2 * 8) + (16 * 3 * 4 + 2 * 16) + (4 * 8 + 2 * 8) + (8 * e + 2 * e)
    decoder = (e * 4 + 2 * 4) + (8 * 3 * 4 + 2 * 8) + (4 * e + 2 * e) + (e * 4 + 2 * 4) + (4 * o + 2 * o)
    assert parameter_count(convs2s()) == 2 * v * e + v * o + 2 * positions * e + encoder + decoder


def test_the_encoder_of_convs2s_gets_a_part_of_its_gradient() -> None:
    """With one decoder layer it is a half: a bias after the scaling has twice the gradient of one before it."""
    torch.manual_seed(3)
    network = ConvS2S(convs2s()).double()
    shift_E = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    real_start = network.start(torch.tensor([[5, 6, 3]]))
    keys_BSE, values_BSE, visible_BS = real_start.sentences
    real_start.sentences = (keys_BSE + shift_E, values_BSE + shift_E * math.sqrt(0.5), visible_BS)
    network.advance(real_start, torch.tensor([[2]])).sum().backward()
    assert shift_E.grad is not None
    assert network.encoder_out.bias.grad is not None
    assert_close(network.encoder_out.bias.grad, 0.5 * shift_E.grad)


def test_sentences_beyond_the_learned_positions_are_refused() -> None:
    network = ConvS2S(convs2s())
    with pytest.raises(DataError, match="12 tokens is longer than the 11 positions"):
        network(torch.full((1, 12), 5), torch.full((1, 3), 5))


def test_kernels_without_a_middle_are_refused() -> None:
    with pytest.raises(ValidationError, match="even kernel"):
        convs2s(encoder=((4, 2),))
    with pytest.raises(ValidationError, match="Set it to 3"):
        ByteNetConfig(kernel=2)
    with pytest.raises(ValidationError, match="must be odd"):
        NeuralGpuConfig(kernel_height=2)
    with pytest.raises(ValidationError, match="Set both to one width"):
        convs2s(tied="all")


@pytest.mark.parametrize(("side", "dilation"), [("causal", 1), ("causal", 4), ("centred", 2)])
def test_a_dilated_convolution_equals_torchs(side: str, dilation: int) -> None:
    torch.manual_seed(3)
    ours = Convolution(5, 7, kernel=3).double()
    nn.init.normal_(ours.bias_D)
    x_BTD = torch.randn(2, 9, 5, dtype=torch.float64)
    reach = 2 * dilation
    padded = functional.pad(x_BTD.mT, (reach, 0) if side == "causal" else (reach // 2, reach // 2))
    weight = ours.weight.view(3, 7, 5).permute(1, 2, 0)
    expected = functional.conv1d(padded, weight, ours.bias_D, dilation=dilation).mT
    assert_close(ours(windows(x_BTD, kernel=3, dilation=dilation, side=side)), expected)  # type: ignore[arg-type]


def test_a_bytenet_block_is_its_equation() -> None:
    torch.manual_seed(3)
    block = DilatedBlock(ByteNetConfig(d_model=8), dilation=2).double()
    x_BTD = torch.randn(1, 7, 8, dtype=torch.float64)
    narrow = functional.layer_norm(block.W_1(functional.layer_norm(x_BTD, (8,)).relu()), (4,)).relu()
    weight = block.W_2.weight.view(3, 4, 4).permute(1, 2, 0)
    middle = functional.conv1d(narrow.mT, weight, padding=2, dilation=2).mT
    expected = x_BTD + block.W_3(functional.layer_norm(middle, (4,)).relu())
    assert_close(block(x_BTD, side="centred"), expected)


def test_bytenet_unfolds_the_source_and_goes_on_beyond_it() -> None:
    torch.manual_seed(3)
    network = ByteNet(
        ByteNetConfig(vocabulary_size=23, d_model=8, sets=1, dilations=(1, 2), length_factor=1.5)
    ).double()
    assert [network.config.columns(length) for length in (1, 2, 3, 4)] == [2, 3, 5, 6]
    (columns_BLD,) = network.start(torch.tensor([[5, 6, 3], [7, 3, 0]])).sentences
    assert (columns_BLD.abs().sum(dim=-1) > 0).tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert network(torch.tensor([[5, 3]]), torch.full((1, 9), 7)).shape == (1, 9, 8)


def test_bytenet_parameters_by_the_formula() -> None:
    v, d, k, blocks = 23, 6, 3, 2 * 2 * 3
    block = (4 + k) * d * d + (d + d + 2 * d) + 2 * (2 * d + d + d)  # matrices, biases, norms
    config = ByteNetConfig(vocabulary_size=v, d_model=2 * d, sets=2, dilations=(1, 2, 4), tied="inputs")
    assert parameter_count(config) == 2 * v * 2 * d + blocks * block + 4 * d * d + 2 * d


def test_the_reach_of_a_masked_set_is_the_papers() -> None:
    """One set of dilations 1, 2, 4, 8, 16 sees 62 positions before its own, and no more."""
    torch.manual_seed(3)
    config = ByteNetConfig(vocabulary_size=23, d_model=8, sets=1)
    network = ByteNet(config).double()
    x_BTD = torch.randn(1, 80, 8, dtype=torch.float64, requires_grad=True)
    y_BTD = x_BTD
    for block in network.decoder:
        y_BTD = block(y_BTD, side="causal")
    y_BTD[0, 70].sum().backward()
    assert x_BTD.grad is not None
    seen = x_BTD.grad[0].abs().sum(dim=-1).nonzero().flatten()
    assert (int(seen.min()), int(seen.max())) == (70 - 62, 70)


def test_a_gated_convolution_by_hand() -> None:
    config = NeuralGpuConfig(vocabulary_size=23, d_model=1, height=1, kernel=1, kernel_height=1, layers=1)
    unit = GatedConvolution(config, has_tape=True).double()
    with torch.no_grad():
        unit.gates.weight.copy_(torch.tensor([[0.5], [-1.0]]))  # u, r
        unit.gates_bias.copy_(torch.tensor([1.0, 0.5]))
        unit.candidate.weight.fill_(2.0)
        unit.candidate_bias.fill_(0.25)
        unit.tape.weight.copy_(torch.tensor([[1.0], [0.5], [-0.5]]))
    state, tape = 0.5, 0.75
    update, reset = (1.2 / (1 + math.exp(-x)) - 0.1 for x in (0.25 + 1.0 + 0.75, -0.5 + 0.5 + 0.375))
    candidate = math.tanh(2.0 * reset * state + 0.25 - 0.375)
    as_tensor = (torch.full((1, 1, 1, 1), number, dtype=torch.float64) for number in (state, tape))
    found = float(unit(*as_tensor).detach())
    assert found == pytest.approx(update * state + (1 - update) * candidate, abs=1e-12)
    saturated = unit(torch.full((1, 1, 1, 1), 40.0, dtype=torch.float64))  # σ' reaches 1, so the state stays
    assert float(saturated.detach()) == 40.0


def test_neural_gpu_parameters_by_the_formula() -> None:
    v, m, k, layers = 23, 6, 3 * 5, 2
    config = NeuralGpuConfig(vocabulary_size=v, d_model=m, kernel=3, kernel_height=5, layers=layers, tied="all")
    encoder, decoder = 3 * (k * m * m + m), 3 * (2 * k * m * m + m)
    assert parameter_count(config) == v * m + 2 * m + layers * (encoder + decoder)


def test_the_neural_gpu_refuses_a_target_that_its_state_cannot_hold() -> None:
    config = NeuralGpuConfig(vocabulary_size=23, d_model=4, height=1, layers=1, length_factor=1.5, length_extra=1)
    network = NeuralGpu(config)
    assert [network.longest_target(length) for length in (1, 2, 3)] == [3, 4, 6]
    assert network(torch.tensor([[5, 3]]), torch.full((1, 4), 7)).shape == (1, 4, 4)
    with pytest.raises(DataError, match="A target of 5 tokens is longer than this network can write"):
        network(torch.tensor([[5, 3], [5, 3]]), torch.tensor([[7, 3, 0, 0, 0], [7, 7, 7, 7, 3]]))
