"""What is recorded is what the network did."""

import pytest
import torch

from transduce.errors import ModelError
from transduce.inspection.recording import STACKS, attentions_of, record
from transduce.model import Transformer
from transduce.networks.log_probabilities import token_log_probabilities

SOURCE, TARGET = [5, 9, 7, 3], [8, 6, 4, 21, 3]


def test_every_row_sums_to_one_and_no_row_looks_ahead(network: Transformer) -> None:
    recording = record(network, SOURCE, TARGET)
    assert recording.encoder.weights_LHQK.shape == (2, 11, 4, 4)
    assert recording.decoder.weights_LHQK.shape == (3, 11, 5, 5)
    assert recording.cross.weights_LHQK.shape == (3, 11, 5, 4)
    for stack in STACKS:
        weights = recording.stack(stack).weights_LHQK
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert not recording.decoder.weights_LHQK.triu(diagonal=1).any()


def test_weights_and_values_make_the_output_of_the_layer(network: Transformer) -> None:
    recording = record(network, SOURCE, TARGET)
    attention = attentions_of(network, "encoder")[0]
    inputs_BSD = network.encoder.positions(network.embeddings.embed_source(torch.tensor([SOURCE])))
    mixed_HSG = recording.encoder.weights_LHQK[0] @ recording.encoder.value_LHKG[0]
    expected_SD = attention.W_O(mixed_HSG.transpose(0, 1).flatten(start_dim=1))
    torch.testing.assert_close(attention(inputs_BSD, inputs_BSD)[0], expected_SD)


def test_watching_changes_nothing_and_leaves_nothing_behind(network: Transformer) -> None:
    source_BS, target_BT = torch.tensor([SOURCE]), torch.tensor([TARGET])
    before = network(source_BS, target_BT)
    log_TV = record(network, SOURCE, TARGET).log_probabilities_TV
    assert torch.equal(network(source_BS, target_BT), before)
    assert not any(module._forward_hooks for module in network.modules())
    expected_T = token_log_probabilities(before, network.output, target_BT)[0]
    torch.testing.assert_close(log_TV.gather(-1, target_BT[0][:, None])[:, 0], expected_T)


def test_a_network_that_has_diverged_is_refused(network: Transformer) -> None:
    broken = Transformer(network.config).eval()
    broken.load_state_dict(network.state_dict())
    with torch.no_grad():
        broken.output.matrix_VD[5] = float("nan")
    with pytest.raises(ModelError, match="its training diverged"):
        record(broken, SOURCE, TARGET)
