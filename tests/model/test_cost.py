"""What a network is said to cost, against torch's own counters."""

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from transduce.architectures import authors_parameter_count, empty_network, parameter_count, parameters_by_part
from transduce.model import ModelConfig, Transformer
from transduce.networks.cost import training_memory, translation_memory

PRIMES = ModelConfig(
    vocabulary_size=101, encoder_layers=3, decoder_layers=2, d_model=14, d_ff=23, heads=3, d_k=5, d_v=7
)


def test_the_base_models_parts_by_hand() -> None:
    assert parameters_by_part(ModelConfig()) == {
        "embeddings": 37_000 * 512,
        "encoder self-attention": 6 * 4 * 512 * 512,
        "encoder feed-forward": 6 * (2 * 512 * 2048 + 2048 + 512),
        "encoder layer norms": 6 * 2 * 2 * 512,
        "decoder self-attention": 6 * 4 * 512 * 512,
        "decoder attention over the encoder": 6 * 4 * 512 * 512,
        "decoder feed-forward": 6 * (2 * 512 * 2048 + 2048 + 512),
        "decoder layer norms": 6 * 3 * 2 * 512,
    }
    assert parameter_count(ModelConfig()) == 63_045_632


@pytest.mark.parametrize("changes", [{}, {"positions": "learned"}, {"norm": "pre"}, {"tied": "none"}])
def test_the_parts_add_up_to_the_whole(changes: dict[str, object]) -> None:
    config = PRIMES.model_copy(update=changes)
    assert parameter_count(config) == sum(parameter.numel() for parameter in Transformer(config).parameters())


@pytest.mark.parametrize(
    ("config", "as_first_coded"),
    [
        (ModelConfig(), 65_126_400),
        (ModelConfig(d_ff=1024), 52_531_200),
        (ModelConfig(d_model=1024, d_ff=4096, heads=16), 218_333_184),
    ],
)
def test_the_first_public_codes_accounting(config: ModelConfig, as_first_coded: int) -> None:
    assert authors_parameter_count(config) == as_first_coded


@pytest.mark.parametrize(("source", "target"), [(7, 7), (11, 11), (7, 13)])
def test_arithmetic_is_what_torch_counts(source: int, target: int) -> None:
    model = Transformer(PRIMES)
    source_BS, target_BT = torch.randint(4, 101, (5, source)), torch.randint(4, 101, (5, target))
    with FlopCounterMode(display=False) as counter:
        model.output.logits(model(source_BS, target_BT)).sum()
    cost = model.cost(source, target)
    assert counter.get_total_flops() == 5 * cost.forward
    assert cost.training == 3 * cost.forward


def test_training_memory_is_near_what_autograd_holds() -> None:
    config = ModelConfig(vocabulary_size=211, d_model=64, d_ff=256, heads=4, layers=2)
    model = Transformer(config)
    tokens_BT = torch.randint(4, 211, (4, 25))
    of_the_weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    held: list[Tensor] = []

    def hold(tensor: Tensor) -> Tensor:
        held.append(tensor)  # so that no storage is freed and its address used again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        model(tokens_BT, tokens_BT)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in held}
    activations = sum(size for address, size in storages.items() if address not in of_the_weights)
    state = 4 * 4 * parameter_count(config)  # weights, gradients and Adam's two means, in float32
    assert training_memory(model, tokens=100) - state == pytest.approx(activations, rel=0.25)


def test_translation_holds_the_weights_once() -> None:
    network = empty_network(ModelConfig())
    assert translation_memory(network) == 4 * 63_045_632
    assert translation_memory(network, bytes_per_weight=1.0) == 63_045_632
