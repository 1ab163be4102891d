"""The encoder alone: its parameters by name, and what its options change. tests/importing has BERT as the oracle."""

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from transduce.errors import ModelError
from transduce.loaded_encoder import LoadedEncoder
from transduce.model.text_encoder import TextEncoder
from transduce.model.text_encoder_config import TextEncoderConfig
from transduce.model_directory import Description, save_model
from transduce.networks.cost import parameters_by_part
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair

TINY = TextEncoderConfig(vocabulary_size=300, layers=2, d_model=15, heads=3, d_ff=7, learned_positions=11)
SEP = 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tied": False},
        {"masked_head": False},
        {"embedding_norm": False},
        {"token_types": 1},
        {"activation": "relu"},
        {"norm_epsilon": 0.5},
    ],
    ids=str,
)
def test_the_config_knows_every_parameter_and_each_option_matters(changes: dict[str, object]) -> None:
    torch.manual_seed(1)
    config = TextEncoderConfig.model_validate({**TINY.model_dump(), **changes})
    network = TextEncoder(config).eval()
    assert {name: tuple(own.shape) for name, own in network.named_parameters()} == config.parameter_shapes()
    assert sum(parameters_by_part(config).values()) == sum(own.numel() for own in network.parameters())
    plain = TextEncoder(TINY).eval()
    for name, own in plain.named_parameters():
        if name in dict(network.named_parameters()) and own.shape == network.get_parameter(name).shape:
            network.get_parameter(name).data = own.data
    ids = [2, 9, SEP, 8, SEP]
    with torch.no_grad():
        found, expected = (own(torch.tensor([ids]), torch.tensor([own.types_of(ids)])) for own in (network, plain))
    changes_vectors = bool(changes) and not {"tied", "masked_head"} & set(changes)
    assert torch.allclose(found, expected) != changes_vectors


def test_a_second_text_has_the_second_type_if_there_is_one() -> None:
    network = TextEncoder(TINY)
    assert network.types_of([2, 9, SEP, 8, 7, SEP]) == [0, 0, 0, 1, 1, 1]
    assert network.types_of([2, 9, SEP]) == [0, 0, 0]
    assert network.types_of([2, 9]) == [0, 0]
    only = TextEncoder(TINY.model_copy(update={"token_types": 1}))
    assert only.types_of([2, 9, SEP, 8, SEP]) == [0] * 5


def test_sizes_that_no_layer_could_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="cannot be shared equally by 4 heads"):
        TextEncoderConfig(d_model=15, heads=4)
    tokenizer = BpeTokenizer.learn(["the dog runs."] * 3, vocabulary_size=300)
    network = TextEncoder(TINY.model_copy(update={"vocabulary_size": tokenizer.vocabulary_size}))
    parameters, tokenizers = dict(network.named_parameters()), TokenizerPair.shared(tokenizer)
    save_model(tmp_path / "model", Description(architecture=network.config), parameters, tokenizers=tokenizers, card="")
    with pytest.raises(ModelError, match="a tokenizer of the kind word_pieces"):
        LoadedEncoder.load(tmp_path / "model")
