"""Every network learns: it memorises 50 pairs, and it copies and reverses strings of 10 symbols."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from transduce.networks.config import NetworkConfig
from transduce.networks.network import Network
from transduce.rivals.bytenet_config import ByteNetConfig
from transduce.rivals.convs2s_config import ConvS2SConfig
from transduce.rivals.gnmt_config import GnmtConfig
from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.luong_config import LuongConfig
from transduce.rivals.memory_network_config import MemoryNetworkConfig
from transduce.rivals.neural_gpu_config import NeuralGpuConfig
from transduce.rivals.rnnsearch_config import RnnSearchConfig
from transduce.torch_networks import NETWORKS, new_network

START, END, SYMBOLS = 2, 3, 14
SIZES: dict[str, tuple[NetworkConfig, float]] = {
    "lstm": (LstmConfig(vocabulary_size=SYMBOLS, d_model=96, layers=1), 5e-3),
    "rnnsearch": (
        RnnSearchConfig(vocabulary_size=SYMBOLS, d_model=48, embedding_width=24, alignment_width=32, output_width=24),
        5e-3,
    ),
    "luong": (LuongConfig(vocabulary_size=SYMBOLS, d_model=64, layers=1), 5e-3),
    "gnmt": (GnmtConfig(vocabulary_size=SYMBOLS, d_model=48, layers=2, alignment_width=32, dropout=0.0), 5e-3),
    "convs2s": (
        ConvS2SConfig(
            vocabulary_size=SYMBOLS,
            d_model=32,
            output_width=32,
            encoder=((32, 3),) * 2,
            decoder=((32, 3),) * 2,
            positions=16,
            dropout=0.0,
        ),
        3e-3,
    ),
    "bytenet": (ByteNetConfig(vocabulary_size=SYMBOLS, d_model=64, sets=1, dilations=(1, 2, 4, 8)), 3e-3),
    "neural-gpu": (
        NeuralGpuConfig(
            vocabulary_size=SYMBOLS,
            d_model=32,
            height=1,
            kernel_height=1,
            layers=1,
            length_factor=1.0,
            length_extra=0,
            dropout=0.0,
        ),
        5e-3,
    ),
    "memory-network": (MemoryNetworkConfig(vocabulary_size=SYMBOLS, d_model=48, hops=3, positions=16), 1e-2),
}
"""A small network of each kind and its learning rate."""


def test_every_rival_is_here() -> None:
    assert set(SIZES) == set(NETWORKS) - {"transformer", "language-model"}


def strings(count: int, length: int) -> Tensor:
    return torch.cat([torch.randint(4, SYMBOLS, (count, length)), torch.full((count, 1), END)], dim=1)


def learn(network: Network, pairs: Callable[[], tuple[Tensor, Tensor]], *, rate: float, steps: int) -> float:
    """Train until nearly all labels of a batch are right, or for `steps`; return the share that is right."""
    optimizer, share = torch.optim.Adam(network.parameters(), lr=rate), 0.0
    for step in range(steps):
        source_BS, target_BT = pairs()
        scores_NV = network.output.logits(network(source_BS, target_BT)).flatten(0, 1)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores_NV, target_BT.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 50)
        optimizer.step()
        share = float((scores_NV.argmax(-1) == target_BT.flatten()).float().mean())
        if share > 0.98:
            break
    return share


@pytest.mark.parametrize("kind", SIZES)
def test_it_memorises_fifty_pairs(kind: str) -> None:
    torch.manual_seed(1)
    config, rate = SIZES[kind]
    pairs = strings(50, 6), strings(50, 5)
    assert learn(new_network(config), lambda: pairs, rate=rate, steps=400) > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize("kind", SIZES)
def test_it_copies_and_reverses_strings_of_ten_symbols(kind: str, task: str) -> None:
    torch.manual_seed(1)
    config, rate = SIZES[kind]

    def pairs() -> tuple[Tensor, Tensor]:
        source_BS = strings(64, 10)
        turned_BT = torch.cat([source_BS[:, :-1].flip(1), source_BS[:, -1:]], dim=1)
        return source_BS, source_BS if task == "copy" else turned_BT

    assert learn(new_network(config), pairs, rate=rate, steps=2000) > 0.95
