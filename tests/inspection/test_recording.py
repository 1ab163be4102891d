"""What is recorded is what the network computed, whatever network it is."""

import pytest
import torch
from tests.inspection.other_networks import MeanConfig, MeanNetwork, OneBlockNetwork

from transduce.errors import ModelError
from transduce.inspection.recording import record
from transduce.model import Transformer
from transduce.networks.attention_block import AttentionBlock
from transduce.networks.log_probabilities import token_log_probabilities
from transduce.networks.network import Network

SOURCE, TARGET = [5, 9, 7, 3], [8, 6, 4, 21, 3]
CONFIG = MeanConfig(vocabulary_size=23, d_model=7)


def check_log_probabilities(network: Network) -> None:
    target_BT = torch.tensor([TARGET])
    expected_T = token_log_probabilities(network(torch.tensor([SOURCE]), target_BT), network.output, target_BT)[0]
    found_TV = record(network, SOURCE, TARGET).log_probabilities_TV
    torch.testing.assert_close(found_TV.gather(-1, target_BT[0][:, None])[:, 0], expected_T)


def test_a_transformer_gives_its_own_blocks_and_log_probabilities(network: Transformer) -> None:
    blocks, own = record(network, SOURCE, TARGET).blocks, network.attention(SOURCE, TARGET)
    assert list(blocks) == list(own)
    assert all(torch.equal(blocks[name].weights_LHQK, own[name].weights_LHQK) for name in own)
    check_log_probabilities(network)


def test_any_network_with_one_block_is_recorded() -> None:
    network = OneBlockNetwork(CONFIG, name="cross", queries="target", keys="source").eval()
    assert record(network, SOURCE, TARGET).blocks["cross"].weights_LHQK.shape == (1, 1, 5, 4)
    check_log_probabilities(network)


def test_a_network_without_attention_is_refused_by_its_kind() -> None:
    with pytest.raises(ModelError, match=r"This network \(kind mean\) has no attention to show"):
        record(MeanNetwork(CONFIG).eval(), SOURCE, TARGET)


def test_weights_must_have_the_shape_of_their_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    network = OneBlockNetwork(CONFIG, name="cross", queries="target", keys="source").eval()
    wrong = {"cross": AttentionBlock("target", "read", torch.ones(1, 1, 5, 4))}
    monkeypatch.setattr(network, "attention", lambda source, target: wrong)
    with pytest.raises(AssertionError, match="cross"):
        record(network, SOURCE, TARGET)


def test_a_network_that_has_diverged_is_refused(network: Transformer) -> None:
    broken = Transformer(network.config).eval()
    broken.load_state_dict(network.state_dict())
    with torch.no_grad():
        broken.output.matrix_VD[5] = float("nan")
    with pytest.raises(ModelError, match="its training diverged"):
        record(broken, SOURCE, TARGET)
