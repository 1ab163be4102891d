"""The recorded attention is what the Transformer's sub-layers computed."""

from typing import Literal

import pytest
import torch

from transduce.model import ModelConfig, Transformer
from transduce.model.attention import MultiHeadAttention
from transduce.networks.attention_sublayer import sublayers_by_kind

SOURCE, TARGET = [5, 9, 7, 3], [8, 6, 4, 21, 3]


@pytest.fixture(params=["scaled", "unscaled", "additive"])
def network(request: pytest.FixtureRequest) -> Transformer:
    torch.manual_seed(5)
    config = ModelConfig(
        vocabulary_size=23,
        d_model=22,
        heads=11,
        d_ff=13,
        d_v=3,
        d_k=5,
        encoder_layers=2,
        decoder_layers=3,
        scores=request.param,
    )
    return Transformer(config).eval()


def test_every_row_sums_to_one_and_no_row_looks_ahead(network: Transformer) -> None:
    blocks = network.attention(SOURCE, TARGET)
    assert {name: (block.queries, block.keys) for name, block in blocks.items()} == {
        "encoder": ("source", "source"),
        "decoder": ("target", "read"),
        "cross": ("target", "source"),
    }
    shapes = {name: tuple(block.weights_LHQK.shape) for name, block in blocks.items()}
    assert shapes == {"encoder": (2, 11, 4, 4), "decoder": (3, 11, 5, 5), "cross": (3, 11, 5, 4)}
    for block in blocks.values():
        torch.testing.assert_close(block.weights_LHQK.sum(dim=-1), torch.ones(block.weights_LHQK.shape[:-1]))
    assert not blocks["decoder"].weights_LHQK.triu(diagonal=1).any()


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_softmax_of_the_scores_of_the_projections_is_the_weights(
    network: Transformer, kind: Literal["encoder", "decoder", "cross"]
) -> None:
    block = network.attention(SOURCE, TARGET)[kind]
    projections = block.projections
    assert projections is not None
    if projections.additive_LHE is None:
        scores_LHQK = projections.query_LHQE @ projections.key_LHKE.mT * projections.scale
    else:
        hidden = (projections.query_LHQE[:, :, :, None] + projections.key_LHKE[:, :, None]).tanh()
        scores_LHQK = (hidden * projections.additive_LHE[:, :, None, None]).sum(dim=-1)
    if kind == "decoder":
        scores_LHQK = scores_LHQK.masked_fill(torch.ones_like(scores_LHQK).triu(diagonal=1).bool(), -torch.inf)
    torch.testing.assert_close(scores_LHQK.softmax(dim=-1), block.weights_LHQK)


def test_weights_and_values_make_the_output_of_the_layer(network: Transformer) -> None:
    block = network.attention(SOURCE, TARGET)["encoder"]
    assert block.projections is not None
    attention = sublayers_by_kind(network)["encoder"][0]
    inputs_BSD = network.encoder.positions(network.embeddings.embed_source(torch.tensor([SOURCE])))
    mixed_HSG = block.weights_LHQK[0] @ block.projections.value_LHKG[0]
    assert isinstance(attention, MultiHeadAttention)
    expected_SD = attention.W_O(mixed_HSG.transpose(0, 1).flatten(start_dim=1))
    torch.testing.assert_close(attention(inputs_BSD, inputs_BSD)[0], expected_SD)


def test_recording_changes_nothing_and_leaves_nothing_behind(network: Transformer) -> None:
    source_BS, target_BT = torch.tensor([SOURCE]), torch.tensor([TARGET])
    before = network(source_BS, target_BT)
    network.attention(SOURCE, TARGET)
    assert torch.equal(network(source_BS, target_BT), before)
    assert not any(module._forward_hooks for module in network.modules())
