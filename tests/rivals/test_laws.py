"""What holds for every network that the paper compares itself with (and for the Transformer)."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from transduce.model.language_model_config import LanguageModelConfig
from transduce.networks.config import NetworkConfig
from transduce.networks.network import Network
from transduce.networks.torch_stepper import TorchStepper
from transduce.rivals.bytenet_config import ByteNetConfig
from transduce.rivals.convs2s_config import ConvS2SConfig
from transduce.rivals.gnmt_config import GnmtConfig
from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.luong_config import LuongConfig
from transduce.rivals.memory_network_config import MemoryNetworkConfig
from transduce.rivals.neural_gpu_config import NeuralGpuConfig
from transduce.rivals.rnnsearch_config import RnnSearchConfig
from transduce.special_tokens import SpecialTokens
from transduce.torch_networks import NETWORKS, new_network

SIZES: dict[str, NetworkConfig] = {
    "lstm": LstmConfig(vocabulary_size=37, d_model=11, layers=2, dropout=0.3),
    "lstm, forward": LstmConfig(vocabulary_size=37, d_model=11, layers=1, reversed_source=False, tied="all"),
    "rnnsearch": RnnSearchConfig(
        vocabulary_size=37, d_model=11, embedding_width=7, alignment_width=13, output_width=5, dropout=0.3
    ),
    "rnnsearch, tied": RnnSearchConfig(
        vocabulary_size=37, d_model=11, embedding_width=8, alignment_width=13, output_width=8, tied="all"
    ),
    "rnnsearch, two vocabularies": RnnSearchConfig(
        vocabulary_size=37,
        source_vocabulary_size=41,
        d_model=11,
        embedding_width=7,
        alignment_width=13,
        output_width=5,
    ),
    "luong": LuongConfig(vocabulary_size=37, d_model=11, layers=2, dropout=0.3),
    "luong, dot": LuongConfig(vocabulary_size=37, d_model=13, layers=2, scores="dot", input_feeding=False),
    "luong, concat": LuongConfig(vocabulary_size=37, d_model=13, layers=1, scores="concat", reversed_source=False),
    "gnmt": GnmtConfig(vocabulary_size=37, d_model=11, layers=4, alignment_width=13),
    "convs2s": ConvS2SConfig(
        vocabulary_size=37,
        d_model=10,
        output_width=6,
        encoder=((8, 3), (12, 5)),
        decoder=((8, 3), (14, 2)),
        positions=23,
    ),
    "convs2s, tied": ConvS2SConfig(
        vocabulary_size=37, d_model=8, output_width=8, encoder=((8, 3),), decoder=((8, 3),), positions=23, tied="all"
    ),
    "bytenet": ByteNetConfig(vocabulary_size=37, d_model=14, sets=2, dilations=(1, 2), dropout=0.1),
    "bytenet, wide": ByteNetConfig(
        vocabulary_size=37, d_model=6, sets=1, kernel=5, dilations=(1, 4), length_factor=1.0
    ),
    "neural-gpu": NeuralGpuConfig(vocabulary_size=37, d_model=11, height=2, layers=2, length_extra=2),
    "neural-gpu, flat": NeuralGpuConfig(
        vocabulary_size=37, d_model=7, height=1, kernel_height=1, layers=1, length_extra=3
    ),
    "memory-network": MemoryNetworkConfig(vocabulary_size=37, d_model=11, hops=3, positions=19),
    "memory-network, tied": MemoryNetworkConfig(vocabulary_size=37, d_model=12, hops=2, positions=19, tied="all"),
    "language-model": LanguageModelConfig(
        vocabulary_size=37, d_model=12, layers=2, heads=3, d_ff=17, learned_positions=23, dropout=0.3
    ),
    "language-model, post-norm": LanguageModelConfig(
        vocabulary_size=37,
        d_model=14,
        layers=3,
        heads=2,
        norm="post",
        positions="sinusoidal",
        attention_bias=False,
        activation="gelu",
        tied=False,
        embedding_scale=None,
        output_bias=True,
    ),
    "language-model, without positions": LanguageModelConfig(
        vocabulary_size=37, d_model=12, layers=2, heads=2, positions="none"
    ),
}
ATTENTION = {
    "lstm": {},
    "rnnsearch": {"cross": ("target", "source", (1, 4, 5))},
    "luong": {"cross": ("target", "source", (1, 4, 5))},
    "gnmt": {"cross": ("target", "source", (1, 4, 5))},
    "convs2s": {"cross": ("target", "source", (1, 4, 5))},
    "bytenet": {},
    "neural-gpu": {},
    "memory-network": {"memory": ("target", "source+read", (1, 4, 9))},
}
"""The attention of each kind for the first pair: queries, keys, and the shape of a layer's weights."""
SOURCE_BS = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGET_BT = torch.tensor([[11, 12, 13, 3], [14, 3, 0, 0]])


@pytest.fixture(params=SIZES)
def network(request: pytest.FixtureRequest) -> Network:
    torch.manual_seed(3)
    return new_network(SIZES[request.param]).double().eval()


def logits(network: Network, source_BS: Tensor, target_BT: Tensor) -> Tensor:
    with torch.no_grad():
        return network.output.logits(network(source_BS, target_BT))


def test_every_kind_but_the_transformer_is_here() -> None:
    assert {config.model_dump()["kind"] for config in SIZES.values()} == set(NETWORKS) - {"transformer"}


def test_no_output_depends_on_later_targets(network: Network) -> None:
    changed_BT = TARGET_BT.clone()
    changed_BT[0, 2] = 20
    before, after = logits(network, SOURCE_BS, TARGET_BT), logits(network, SOURCE_BS, changed_BT)
    assert_close(before[0, :3], after[0, :3])
    assert not torch.allclose(before[0, 3], after[0, 3])


def test_padding_changes_nothing(network: Network) -> None:
    alone = logits(network, SOURCE_BS[1:, :3], TARGET_BT[1:, :2])
    assert_close(logits(network, SOURCE_BS, TARGET_BT)[1:, :2], alone)


def test_special_ids_may_be_any() -> None:
    for config in SIZES.values():
        torch.manual_seed(3)
        usual = new_network(config).double().eval()
        torch.manual_seed(3)
        unusual = new_network(config, SpecialTokens(padding=36, unknown=1, start=2, end=0)).double().eval()
        source_BS = SOURCE_BS.masked_fill(SOURCE_BS == 0, 36)
        assert_close(logits(unusual, source_BS, TARGET_BT)[0], logits(usual, SOURCE_BS, TARGET_BT)[0])


def test_one_position_at_a_time_equals_the_whole_pass_also_after_selecting(network: Network) -> None:
    stepper = TorchStepper(network)
    state = stepper.start(SOURCE_BS.numpy())
    inputs_BT = torch.tensor([[2, 11, 12, 13], [2, 14, 14, 14]])
    state = stepper.select(state, torch.tensor([1, 0]).numpy(), torch.zeros(2, 3, dtype=torch.int64).numpy())
    labels = torch.cat([inputs_BT[:, 1:], torch.full((2, 1), 3)], dim=1).flip(0)
    whole = logits(network, SOURCE_BS.flip(0), labels).log_softmax(-1)
    for position in range(4):
        tokens_BW = inputs_BT.flip(0)[:, position : position + 1].expand(-1, 3)
        found_BWV = torch.from_numpy(stepper.step(state, tokens_BW.numpy()))
        assert_close(found_BWV, whole[:, position : position + 1].expand(-1, 3, -1))
        state = stepper.select(state, torch.tensor([0, 1]).numpy(), torch.tensor([[2, 0, 1]] * 2).numpy())


def test_the_weights_of_a_pair_are_those_that_it_computes_with(network: Network) -> None:
    if network.config.kind == "language-model":
        return  # tests/model/test_language_model.py
    blocks = network.attention(SOURCE_BS[0].tolist(), TARGET_BT[0].tolist())
    layers = {"convs2s": network.config.depth // 2, "memory-network": getattr(network.config, "hops", 0)}
    depth = layers.get(network.config.kind, 1)
    found = {name: (block.queries, block.keys, tuple(block.weights_LHQK.shape)) for name, block in blocks.items()}
    assert found == {name: (*axes, (depth, *shape)) for name, (*axes, shape) in ATTENTION[network.config.kind].items()}
    for block in blocks.values():
        assert_close(block.weights_LHQK.sum(dim=-1), torch.ones(block.weights_LHQK.shape[:-1]).double())
        seen = block.projections
        if seen is None:
            assert network.config.kind == "memory-network", "its keys depend on the query's position"
            continue
        if seen.additive_LHE is None:
            scores_LHQK = seen.scale * seen.query_LHQE @ seen.key_LHKE.mT
        else:
            hidden = (seen.query_LHQE[..., :, None, :] + seen.key_LHKE[..., None, :, :]).tanh()
            scores_LHQK = (hidden * seen.additive_LHE[:, :, None, None]).sum(dim=-1)
        assert_close(scores_LHQK.softmax(dim=-1), block.weights_LHQK)


def test_operations_are_what_torch_counts(network: Network) -> None:
    source_BS, target_BT = torch.randint(4, 37, (5, 6)), torch.randint(4, 37, (5, 9))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.output.logits(network(source_BS, target_BT))
    # torch counts no matrix-vector products: the alignment's v · tanh(…), which is 2 n m a operations; a is 13.
    missing, said = 2 * 6 * 9 * 13, network.config.cost(6, 9).forward
    assert counter.get_total_flops() in (5 * said, 5 * (said - missing))


def test_matrices_are_parameters_seen_as_blocks(network: Network) -> None:
    named = dict(network.named_parameters())
    views = list(network.matrices())
    assert len({view.name for view in views}) == len(views)
    for view in views:
        blocks, rows, columns = view.shape
        assert tuple(named[view.name].shape) == (blocks * rows, columns)


def test_every_gate_and_every_position_of_a_kernel_is_a_matrix_of_its_own() -> None:
    def blocks(kind: str, name: str) -> int:
        return {view.name: view.shape[0] for view in new_network(SIZES[kind]).matrices()}[name]

    assert blocks("lstm", "encoder.units.0.gates.weight") == 4
    assert blocks("rnnsearch", "writer.gates.weight") == 2
    assert blocks("rnnsearch", "writer_context.weight") == 3
    assert blocks("luong", "feeding.weight") == 4
    assert blocks("bytenet, wide", "encoder.0.W_2.weight") == 5
    assert blocks("neural-gpu", "decoder.0.tape.weight") == 3 * 3 * 3
    assert not list(new_network(SIZES["convs2s"]).matrices())  # a change of direction alone would undo its lengths


@pytest.mark.parametrize("kind", ["lstm", "rnnsearch", "luong", "gnmt", "convs2s", "bytenet", "neural-gpu"])
def test_a_decoding_step_costs_the_same_at_every_position(kind: str) -> None:
    network, costs = new_network(SIZES[kind]).double().eval(), []
    with torch.no_grad():
        state = network.start(SOURCE_BS.expand(2, 5))
        for _ in range(7):
            with FlopCounterMode(display=False) as counter:
                network.output.logits(network.advance(state, torch.tensor([[7], [8]])))
            costs.append((counter.get_total_flops(), sum(beam.numel() for beam in state.beams)))
    assert len(set(costs)) == 1
