"""The torch class of each kind of network, and networks with new, empty or given weights."""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from transduce.model.language_model import LanguageModel
from transduce.model.text_encoder import TextEncoder
from transduce.model.text_encoder_config import TextEncoderConfig
from transduce.model.transformer import Transformer
from transduce.networks.config import NetworkConfig
from transduce.networks.network import Network
from transduce.rivals.bytenet import ByteNet
from transduce.rivals.convs2s import ConvS2S
from transduce.rivals.gnmt import GnmtNetwork
from transduce.rivals.lstm import LstmNetwork
from transduce.rivals.luong import LuongNetwork
from transduce.rivals.memory_network import MemoryNetwork
from transduce.rivals.neural_gpu import NeuralGpu
from transduce.rivals.rnnsearch import RnnSearch
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

Module = TypeVar("Module", bound=nn.Module)

NETWORKS: Mapping[str, Any] = {
    "transformer": Transformer,
    "lstm": LstmNetwork,
    "rnnsearch": RnnSearch,
    "luong": LuongNetwork,
    "gnmt": GnmtNetwork,
    "convs2s": ConvS2S,
    "bytenet": ByteNet,
    "neural-gpu": NeuralGpu,
    "memory-network": MemoryNetwork,
    "language-model": LanguageModel,
}
"""The class of each kind; `Any`, since each class takes its own config."""


def new_network(config: NetworkConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> Network:
    """Return a network of these sizes with newly drawn weights."""
    network: Network = NETWORKS[config.kind](config, tokens)
    return network


def filled_network(config: NetworkConfig, tokens: SpecialTokens, weights: Mapping[str, NDArray[np.float32]]) -> Network:
    """Return a network with these weights, ready to translate; the arrays become its memory, so it owns them."""
    with torch.device("meta"):  # no memory is allocated for weights that are replaced
        network = new_network(config, tokens)
    return _filled(network, weights)


def filled_text_encoder(
    config: TextEncoderConfig, tokens: SpecialTokens, weights: Mapping[str, NDArray[np.float32]]
) -> TextEncoder:
    """Return a text encoder with these weights, which it owns."""
    with torch.device("meta"):
        encoder = TextEncoder(config, tokens)
    return _filled(encoder, weights)


def _filled(network: Module, weights: Mapping[str, NDArray[np.float32]]) -> Module:
    filled = {id(empty): nn.Parameter(torch.from_numpy(weights[name])) for name, empty in network.named_parameters()}
    for module in network.modules():
        for name, empty in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(module, name, filled[id(empty)])
    return network.eval()
