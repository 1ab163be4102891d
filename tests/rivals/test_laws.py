"""What holds for every network that the paper compares itself with (and for the Transformer)."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from transduce.architectures import NETWORKS, new_network
from transduce.networks.network import Network, NetworkConfig
from transduce.networks.torch_stepper import TorchStepper
from transduce.rivals.rnnsearch import RnnSearchConfig
from transduce.special_tokens import SpecialTokens

SIZES: dict[str, NetworkConfig] = {
    "rnnsearch": RnnSearchConfig(
        vocabulary_size=37, d_model=11, embedding_width=7, alignment_width=13, output_width=5, dropout=0.3
    ),
    "rnnsearch, tied": RnnSearchConfig(
        vocabulary_size=37, d_model=11, embedding_width=8, alignment_width=13, output_width=8, tied="all"
    ),
}
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
    blocks = network.attention(SOURCE_BS[0].tolist(), TARGET_BT[0].tolist())
    assert blocks, "every network here attends"
    for block in blocks.values():
        assert_close(block.weights_LHQK.sum(dim=-1), torch.ones(block.weights_LHQK.shape[:-1]).double())
        assert (block.queries, block.keys, block.weights_LHQK.shape) == ("target", "source", (1, 1, 4, 5))
        seen = block.projections
        assert seen is not None
        assert seen.additive_LHE is not None
        hidden = (seen.query_LHQE[..., :, None, :] + seen.key_LHKE[..., None, :, :]).tanh()
        scores_LHQK = (hidden * seen.additive_LHE[:, :, None, None]).sum(dim=-1)
        assert_close(scores_LHQK.softmax(dim=-1), block.weights_LHQK)


def test_operations_are_what_torch_counts(network: Network) -> None:
    source_BS, target_BT = torch.randint(4, 37, (5, 6)), torch.randint(4, 37, (5, 9))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.output.logits(network(source_BS, target_BT))
    # torch counts no matrix-vector products: the alignment's v · tanh(…), which is 2 n m a operations.
    missing = 2 * 6 * 9 * 13
    assert counter.get_total_flops() in (5 * network.cost(6, 9).forward, 5 * (network.cost(6, 9).forward - missing))


def test_matrices_are_parameters_seen_as_blocks(network: Network) -> None:
    named = dict(network.named_parameters())
    views = list(network.matrices())
    assert len({view.name for view in views}) == len(views)
    for view in views:
        blocks, rows, columns = view.shape
        assert tuple(named[view.name].shape) == (blocks * rows, columns)
