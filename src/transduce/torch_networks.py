"""The torch class of each kind of network, and networks with new, empty or given weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from transduce.model.config import ModelConfig
from transduce.model.language_model import LanguageModel
from transduce.model.language_model_config import LanguageModelConfig
from transduce.model.transformer import Transformer
from transduce.networks.config import NetworkConfig
from transduce.networks.network import Network
from transduce.rivals.bytenet import ByteNet
from transduce.rivals.bytenet_config import ByteNetConfig
from transduce.rivals.convs2s import ConvS2S
from transduce.rivals.convs2s_config import ConvS2SConfig
from transduce.rivals.gnmt import GnmtNetwork
from transduce.rivals.gnmt_config import GnmtConfig
from transduce.rivals.lstm import LstmNetwork
from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.luong import LuongNetwork
from transduce.rivals.luong_config import LuongConfig
from transduce.rivals.memory_network import MemoryNetwork
from transduce.rivals.memory_network_config import MemoryNetworkConfig
from transduce.rivals.neural_gpu import NeuralGpu
from transduce.rivals.neural_gpu_config import NeuralGpuConfig
from transduce.rivals.rnnsearch import RnnSearch
from transduce.rivals.rnnsearch_config import RnnSearchConfig
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

NETWORKS: Mapping[str, tuple[type[NetworkConfig], Any]] = {
    "transformer": (ModelConfig, Transformer),
    "lstm": (LstmConfig, LstmNetwork),
    "rnnsearch": (RnnSearchConfig, RnnSearch),
    "luong": (LuongConfig, LuongNetwork),
    "gnmt": (GnmtConfig, GnmtNetwork),
    "convs2s": (ConvS2SConfig, ConvS2S),
    "bytenet": (ByteNetConfig, ByteNet),
    "neural-gpu": (NeuralGpuConfig, NeuralGpu),
    "memory-network": (MemoryNetworkConfig, MemoryNetwork),
    "language-model": (LanguageModelConfig, LanguageModel),
}
"""The config and the class of each kind; `Any`, since each class takes its own config."""


def new_network(config: NetworkConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> Network:
    """Return a network of these sizes with newly drawn weights."""
    own, network_class = NETWORKS[config.kind]
    assert type(config) is own, f"{type(config).__name__} is not the config of a {config.kind}"
    network: Network = network_class(config, tokens)
    return network


def arrays_of(network: Network) -> dict[str, NDArray[np.float32]]:
    """Return a copy of the network's weights by name; a tied matrix has one name."""
    return {name: weight.detach().float().cpu().numpy().copy() for name, weight in network.named_parameters()}


def filled_network(config: NetworkConfig, tokens: SpecialTokens, weights: Mapping[str, NDArray[np.float32]]) -> Network:
    """Return a network with these weights, ready to translate; the arrays become its memory, so it owns them."""
    with torch.device("meta"):  # no memory is allocated for weights that are replaced
        network = new_network(config, tokens)
    filled = {id(empty): nn.Parameter(torch.from_numpy(weights[name])) for name, empty in network.named_parameters()}
    for module in network.modules():
        for name, empty in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(module, name, filled[id(empty)])
    return network.eval()
