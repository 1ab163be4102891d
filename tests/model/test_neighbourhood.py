"""Restricted self-attention: blocks against a mask, full attention where the window holds all, reach and operations."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from transduce.model.attention import MultiHeadAttention
from transduce.model.config import ModelConfig
from transduce.model.cost import uses_blocks
from transduce.model.transformer import Transformer
from transduce.networks.torch_stepper import TorchStepper


def sizes(**changes: object) -> ModelConfig:
    return ModelConfig.model_validate(
        {"vocabulary_size": 29, "d_model": 12, "layers": 1, "d_ff": 8, "heads": 3, "dropout": 0.0, **changes}
    )


@pytest.mark.parametrize("scores", ["scaled", "additive"])
@pytest.mark.parametrize("length", [1, 2, 7, 16, 23])
@pytest.mark.parametrize("r", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_blocks_equal_a_mask(stack: str, r: int, length: int, scores: str) -> None:
    torch.manual_seed(3)
    config = sizes(scores=scores, neighbourhood=r)
    layer = MultiHeadAttention(config, window=config.window(stack)).double()
    x_BTD = torch.randn(2, length, 12, dtype=torch.float64)
    place = torch.arange(length)
    distance = place - place[:, None]
    near = distance.abs() <= r // 2 if stack == "encoder" else (distance <= 0) & (distance > -r)
    hidden = torch.tensor([False] * length), place >= max(1, length - 2)
    padding_BHQK = torch.stack(hidden)[:, None, None] if stack == "encoder" else torch.zeros(2, 1, 1, length).bool()
    query, key, value = layer.project(x_BTD, x_BTD)
    allowed = near & ~padding_BHQK
    scored = layer._scores(query, key).masked_fill(~allowed, -torch.inf)
    weights = scored.softmax(dim=-1).nan_to_num(0.0)
    expected = layer.W_O((weights @ value).transpose(1, 2).flatten(start_dim=2))
    visible = ~padding_BHQK if stack == "encoder" else (distance <= 0)[None, None]
    found = layer(x_BTD, x_BTD, visible_BHQK=visible)
    kept = ~torch.stack(hidden) if stack == "encoder" else torch.ones(2, length, dtype=torch.bool)
    assert_close(found[kept], expected[kept])
    assert_close(layer.weights(query, key, visible_BHQK=visible)[:, :, kept[1]], weights[:, :, kept[1]])


@pytest.mark.parametrize("length", [1, 2, 5, 9])
def test_a_window_that_holds_all_is_full_attention_bit_for_bit(length: int) -> None:
    full, restricted = sizes(), sizes(neighbourhood=2 * length - 1)
    source_BS, target_BT = torch.randint(4, 29, (3, length)), torch.randint(4, 29, (3, length))
    outputs: list[Tensor] = []
    for config in (full, restricted):
        torch.manual_seed(3)
        outputs.append(Transformer(config)(source_BS, target_BT))
    assert torch.equal(*outputs)


def test_padding_changes_nothing_and_stepwise_equals_the_whole_pass() -> None:
    torch.manual_seed(3)
    network = Transformer(sizes(layers=2, neighbourhood=4)).double().eval()
    source_BS, target_BT = torch.randint(4, 29, (2, 15)), torch.randint(4, 29, (2, 15))
    source_BS[1, 6:] = target_BT[1, 5:] = 0
    assert uses_blocks((2, 2), 15)
    with torch.no_grad():
        whole_BTD = network(source_BS, target_BT)
        assert_close(network(source_BS[1:, :6], target_BT[1:, :5]), whole_BTD[1:, :5])
        stepper = TorchStepper(network)
        state = stepper.start(source_BS.numpy())
        for position in range(15):
            token = target_BT[:, position - 1 : position] if position else torch.full((2, 1), network.tokens.start)
            found = torch.from_numpy(stepper.step(state, token.numpy()))[0, 0]
            assert_close(found, network.output.logits(whole_BTD[0, position]).log_softmax(-1))


@pytest.mark.parametrize(("length", "r"), [(13, 5), (14, 4), (9, 3)])
def test_the_path_between_both_ends_is_what_the_cost_says(length: int, r: int) -> None:
    layers = sizes(neighbourhood=r).cost(length, length).path_length
    assert layers == -(-(length - 1) // (r // 2))
    for depth, is_joined in ((layers, True), (layers - 1, False)):
        torch.manual_seed(3)
        encoder = Transformer(sizes(layers=depth, neighbourhood=r)).double().eval().encoder
        x_BSD = torch.randn(1, length, 12, dtype=torch.float64, requires_grad=True)
        (encoder(x_BSD)[0, -1] * torch.arange(12)).sum().backward()  # a plain sum of a norm is constant
        assert x_BSD.grad is not None
        assert bool(x_BSD.grad[0, 0].abs().sum() > 0) == is_joined


@pytest.mark.parametrize(("source", "target"), [(8, 11), (64, 50), (200, 333)])
def test_operations_are_what_torch_counts_and_grow_with_n(source: int, target: int) -> None:
    network = Transformer(sizes(neighbourhood=6)).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.output.logits(network(torch.randint(4, 29, (1, source)), torch.randint(4, 29, (1, target))))
    assert counter.get_total_flops() == network.config.cost(source, target).forward
    encoder = [network.config.cost(n, 1).operations["encoder"] for n in (300, 600)]
    assert encoder[1] == 2 * encoder[0]
