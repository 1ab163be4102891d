"""What a network is said to cost, against torch's own counters."""

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from transduce.architectures import authors_parameter_count
from transduce.model import ModelConfig, Transformer
from transduce.networks.cost import parameter_count, parameters_by_part, training_memory, translation_memory

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


@pytest.mark.parametrize(
    "changes",
    [
        *({}, {"positions": "learned"}, {"norm": "pre"}, {"tied": "none"}, {"decoder_mixer": "ssru"}),
        *({"output_bias": True, "embedding_norm": True}, {"tied": "none", "source_vocabulary_size": 103}),
    ],
)
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


def test_an_ssrus_parts_by_hand() -> None:
    parts = parameters_by_part(PRIMES.model_copy(update={"decoder_mixer": "ssru", "embedding_norm": True}))
    assert parts["decoder SSRU"] == 2 * (2 * 14 * 14 + 14)
    assert parts["decoder layer norms"] == (2 * 3 + 1) * 2 * 14
    assert "decoder self-attention" not in parts


def test_an_ssru_waits_for_every_position_before_it() -> None:
    recurrent = PRIMES.model_copy(update={"decoder_mixer": "ssru"})
    assert (recurrent.cost(7, 13).sequential_steps, recurrent.cost(7, 13).path_length) == (3 + 2 * 13, 13)
    assert (PRIMES.cost(7, 13).sequential_steps, PRIMES.cost(7, 13).path_length) == (5, 1)


@pytest.mark.parametrize("decoder_mixer", ["attention", "ssru"])
@pytest.mark.parametrize(("source", "target"), [(7, 7), (11, 11), (7, 13)])
def test_arithmetic_is_what_torch_counts(source: int, target: int, decoder_mixer: str) -> None:
    model = Transformer(PRIMES.model_copy(update={"decoder_mixer": decoder_mixer}))
    source_BS, target_BT = torch.randint(4, 101, (5, source)), torch.randint(4, 101, (5, target))
    with FlopCounterMode(display=False) as counter:
        model.output.logits(model(source_BS, target_BT)).sum()
    cost = model.config.cost(source, target)
    assert counter.get_total_flops() == 5 * cost.forward
    assert cost.training == 3 * cost.forward


@pytest.mark.parametrize("decoder_mixer", ["attention", "ssru"])
def test_training_memory_is_near_what_autograd_holds(decoder_mixer: str) -> None:
    sizes = {"vocabulary_size": 211, "d_model": 64, "d_ff": 256, "heads": 4, "layers": 2}
    config = ModelConfig.model_validate(sizes | {"decoder_mixer": decoder_mixer})
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
    assert training_memory(config, tokens=100) - state == pytest.approx(activations, rel=0.25)


def test_translation_holds_the_weights_once() -> None:
    assert translation_memory(ModelConfig()) == 4 * 63_045_632
    assert translation_memory(ModelConfig(), bytes_per_weight=1.0) == 63_045_632
