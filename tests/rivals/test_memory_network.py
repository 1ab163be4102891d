"""The memory network against a loop in numpy, one hop by hand, and its parameters by formula."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

from transduce.errors import DataError
from transduce.networks.cost import parameter_count
from transduce.rivals.memory_network import MemoryNetwork
from transduce.rivals.memory_network_config import MemoryNetworkConfig


def test_a_hop_by_hand() -> None:
    config = MemoryNetworkConfig(vocabulary_size=5, d_model=2, hops=1, positions=2)
    network = MemoryNetwork(config).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.B_VD[2] = torch.tensor([1.0, 2.0])
        network.A_VD[4] = torch.tensor([0.5, 0.25])  # the source token's score is 0.5 + 0.5 = 1
        network.S_A_PD[0] = torch.tensor([2.0, 0.0])  # the start token's score is that of its age: 2
        network.C_VD[4] = torch.tensor([3.0, -8.0])
        network.H.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.5]]))
    weight = 1 / (1 + math.exp(1.0))
    found = network(torch.tensor([[4]]), torch.tensor([[3]]))[0, 0].tolist()
    assert found == pytest.approx([1.0 + 3.0 * weight, max(0.0, 1.0 - 8.0 * weight)], abs=1e-12)


def test_the_whole_network_equals_a_loop_in_numpy() -> None:
    torch.manual_seed(7)
    network = MemoryNetwork(MemoryNetworkConfig(vocabulary_size=23, d_model=6, hops=3, positions=9)).double()
    p: dict[str, NDArray[np.float64]] = {name: value.detach().numpy() for name, value in network.named_parameters()}
    source, inputs = [5, 9, 12, 3], [2, 7, 20]
    rows = []
    for t, token in enumerate(inputs):
        keys = [p["A_VD"][x] + p["T_A_PD"][j] for j, x in enumerate(source)]
        keys += [p["A_VD"][y] + p["S_A_PD"][t - i] for i, y in enumerate(inputs[: t + 1])]
        values = [p["C_VD"][x] + p["T_C_PD"][j] for j, x in enumerate(source)]
        values += [p["C_VD"][y] + p["S_C_PD"][t - i] for i, y in enumerate(inputs[: t + 1])]
        u = p["B_VD"][token] + p["b_D"]
        for _ in range(3):
            weights = np.exp(np.array(keys) @ u)
            u = p["H.weight"] @ u + weights / weights.sum() @ np.array(values)
            u = np.concatenate([u[:3], np.maximum(u[3:], 0.0)])
        rows.append(u)
    assert_close(network(torch.tensor([source]), torch.tensor([[7, 20, 3]]))[0].detach(), torch.tensor(np.array(rows)))


def test_parameters_by_the_formula() -> None:
    v, d, positions = 23, 6, 9
    config = MemoryNetworkConfig(vocabulary_size=v, d_model=d, positions=positions)
    rest = 4 * positions * d + d * d + d
    found = [parameter_count(config.model_copy(update={"tied": tied})) for tied in ("none", "inputs", "all")]
    assert found == [4 * v * d + rest, 3 * v * d + rest, 2 * v * d + rest]


def test_sentences_beyond_its_positions_are_refused() -> None:
    network = MemoryNetwork(MemoryNetworkConfig(vocabulary_size=23, d_model=6, positions=9))
    with pytest.raises(DataError, match="10 tokens is longer than the 9 positions"):
        network(torch.full((1, 10), 5), torch.full((1, 3), 5))
