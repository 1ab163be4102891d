"""Each capability gives what the plain network gives, or declines and names the option.

The walk covers every value of every option of every kind of network. The value of a number is in `TINY` or
`NUMBERS`: a new option that is a number fails the walk until it is there.
"""

import re
import types
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from tests.export.marian import Marian
from torch import Tensor

from transduce.architectures import CONFIGS, own_source_vocabulary
from transduce.backpropagation import handwritten
from transduce.backpropagation import network as backpropagation
from transduce.core import has_core
from transduce.data.batch import Batch, pad_rows
from transduce.engine import FrozenNetwork, choose_precision, frozen_network
from transduce.errors import ConfigError, ModelError
from transduce.export import ctranslate2, firefox, huggingface
from transduce.export.argos import export_argos
from transduce.export.compact import export_compact
from transduce.model import ModelConfig
from transduce.model_directory import Description, Languages, ModelDirectory, load_model, save_model
from transduce.networks.config import NetworkConfig, Shapes
from transduce.networks.cost import Cost
from transduce.networks.log_probabilities import log_softmax
from transduce.networks.network import Network
from transduce.text.bpe_tokenizer import BpeTokenizer
from transduce.text.tokenizer_pair import TokenizerPair
from transduce.torch_networks import new_network
from transduce.training.arithmetic import Arithmetic
from transduce.training.config import TrainingConfig
from transduce.training.gradient import AutogradGradient, HandwrittenGradient

TOKENIZER = BpeTokenizer.learn(["the dog runs.", "der Hund läuft."] * 3, vocabulary_size=400)
SOURCE_TOKENIZER = BpeTokenizer.learn(["the dog runs.", "a cat sleeps."] * 3, vocabulary_size=300)
TINY: dict[str, dict[str, Any]] = {
    "transformer": {"d_model": 24, "layers": 2, "d_ff": 32, "heads": 3},
    "lstm": {"d_model": 12, "layers": 1},
    "luong": {"d_model": 12, "layers": 1},
    "gnmt": {"d_model": 12, "layers": 2, "alignment_width": 7},
    "convs2s": {
        "d_model": 12,
        "output_width": 12,
        "encoder": ((8, 3), (10, 3)),
        "decoder": ((10, 3),),
        "positions": 19,
    },
    "bytenet": {
        "d_model": 12,
        "sets": 1,
        "dilations": (1, 2),
        "kernel": 3,
        "length_factor": 1.5,
        "length_extra": 1,
    },
    "neural-gpu": {
        "d_model": 12,
        "height": 2,
        "layers": 1,
        "kernel": 3,
        "kernel_height": 1,
        "length_factor": 2.0,
        "length_extra": 3,
    },
    "language-model": {"d_model": 24, "layers": 2, "d_ff": 32, "heads": 3},
    "memory-network": {"d_model": 12, "hops": 2, "positions": 19},
    "rnnsearch": {"d_model": 12, "embedding_width": 10, "alignment_width": 7, "output_width": 10},
}
"""The sizes of every network of the walk, by kind."""
NUMBERS: dict[str, Any] = {
    "vocabulary_size": TOKENIZER.vocabulary_size, "encoder_layers": 1, "decoder_layers": 3, "d_k": 5, "d_v": 5,
    "learned_positions": 61, "dropout": 0.3, "attention_dropout": 0.3, "feed_forward_dropout": 0.3,
    "source_vocabulary_size": SOURCE_TOKENIZER.vocabulary_size,
    "neighbourhood": 3, "norm_epsilon": 0.5, "first_position": 2, "embedding_scale": 1.5,
}  # fmt: skip
COMPANIONS: dict[str, dict[str, Any]] = {
    "learned_positions": {"positions": "learned"},
    "source_vocabulary_size": {"tied": "none"},
    "d_k": {"d_v": 5},
    "d_v": {"d_k": 5},
}
"""What else must be set for an option to be possible, or to matter."""
CAPABILITIES = {
    "the handwritten gradient": backpropagation.obstacle,
    "the C++ core": frozen_network.obstacle,
    "ctranslate2": ctranslate2.obstacle,
    "huggingface": huggingface.obstacle,
    "firefox": firefox.obstacle,
}
SOURCES = [[5, 9, 31, 3], [7, 3], [40, 41, 42, 43, 44, 45, 46, 3]]
TARGETS = [[7, 3], [11, 12, 13, 14, 15, 16, 3], [8, 9, 3]]


def values_of(kind: str, name: str, annotation: Any) -> list[object]:  # noqa: ANN401 - any type
    """Return the values of an option that the walk visits."""
    if typing.get_origin(annotation) is Literal:
        return list(typing.get_args(annotation))
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        return [value for part in parts for value in values_of(kind, name, part)]
    return [False, True] if annotation is bool else [{**NUMBERS, **TINY[kind]}[name]]


WALK = [
    pytest.param(kind, name, value, id=f"{kind}-{name}-{value}")
    for kind, config in CONFIGS.items()
    for name, field in config.model_fields.items()
    for value in values_of(kind, name, field.annotation)
]
LITERALS = [
    pytest.param(kind, name, id=f"{kind}-{name}")
    for kind, config in CONFIGS.items()
    for name, field in config.model_fields.items()
    if typing.get_origin(field.annotation) is Literal
]
walk = pytest.mark.parametrize(("kind", "name", "value"), WALK)


def configured(kind: str, changes: dict[str, Any]) -> NetworkConfig:
    fixed = {"vocabulary_size": TOKENIZER.vocabulary_size, "dropout": 0.0, **TINY[kind]}
    return CONFIGS[kind].model_validate(fixed | changes)


def made(kind: str, name: str, value: object) -> Network:
    """Return the network with this value, whose gains and biases differ from each other."""
    torch.manual_seed(3)
    network = new_network(configured(kind, {**COMPANIONS.get(name, {}), name: value}))
    for parameter in network.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=1.0, std=0.3)
    return network


@torch.no_grad()
def plain(network: Network) -> list[Tensor]:
    """Return the log-probabilities of each pair, shape (T, V)."""
    hidden_BTD = network.eval()(pad_rows(SOURCES), pad_rows(TARGETS))
    log_probabilities_BTV = log_softmax(network.output.logits(hidden_BTD))
    return [own_TV[: len(target)] for own_TV, target in zip(log_probabilities_BTV, TARGETS, strict=True)]


def obstacle_of(capability: str, network: Network, name: str) -> str | None:
    """Return why a capability declines a network, if it does; the reason must name the option, or the kind."""
    found = CAPABILITIES[capability](network.config)
    reasons = (name, *COMPANIONS.get(name, {})) if network.config.kind == "transformer" else ("kind",)
    assert found is None or any(reason in found for reason in reasons)
    return found


@walk
def test_the_handwritten_gradient(kind: str, name: str, value: object) -> None:
    network = made(kind, name, value).double().eval()
    if "dropout" in name:
        pytest.skip("both drop numbers, but not the same ones: tests/backpropagation measures the slope instead")
    if obstacle_of("the handwritten gradient", network, name):
        assert handwritten(network, dtype=torch.float64) is None
        return
    batch = Batch(pad_rows(SOURCES), pad_rows(TARGETS), torch.arange(3).numpy())
    config, arithmetic = TrainingConfig(), Arithmetic(torch.device("cpu"), "float32")
    by_hand = handwritten(network, dtype=torch.float64)
    assert by_hand is not None
    found = []
    for gradient in (
        HandwrittenGradient(by_hand, config, arithmetic=arithmetic),
        AutogradGradient(network, config, arithmetic=arithmetic),
    ):
        for parameter in network.parameters():
            parameter.grad = torch.zeros_like(parameter)
        gradient.refresh()
        loss = gradient.add(batch, dropout_key=1)
        found.append((loss.objective.detach(), [parameter.grad for parameter in network.parameters()]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-7, atol=1e-12)


@walk
def test_the_core(kind: str, name: str, value: object) -> None:
    network = made(kind, name, value)
    if obstacle := obstacle_of("the C++ core", network, name):
        with pytest.raises(ConfigError, match=re.escape(obstacle)):
            choose_precision("int8", [network.config])
        return
    if not has_core():
        pytest.skip("the C++ core was not built")
    assert isinstance(network.config, ModelConfig)
    parameters = {name: weight.detach().numpy().copy() for name, weight in network.named_parameters()}
    expected = torch.cat(plain(network))
    # Rounding to 8 bits moves log-probabilities by 0.010 to 0.013 of their spread; a wrong kind of score by 0.036.
    tolerances: dict[frozen_network.FrozenPrecision, float] = {"float32": 1e-5, "int8": 0.02}
    for precision, tolerance in tolerances.items():
        frozen = FrozenNetwork(parameters, network.config, precision=precision)
        found = []
        for source, target in zip(SOURCES, TARGETS, strict=True):
            state, inputs = frozen.start(np.array([source])), [network.tokens.start, *target[:-1]]
            found += [torch.from_numpy(frozen.step(state, np.array([[token]]))[0].copy()) for token in inputs]
        assert float((torch.cat(found) - expected).std() / expected.std()) < tolerance


def saved(network: Network, folder: Path) -> ModelDirectory:
    description = Description(
        architecture=network.config, languages=Languages(source="en", target="de"), longest_sentence=99
    )
    source = TOKENIZER if own_source_vocabulary(network.config) is None else SOURCE_TOKENIZER
    tokenizers = TokenizerPair(source, TOKENIZER)
    save_model(folder, description, dict(network.named_parameters()), tokenizers=tokenizers, card="")
    return load_model(folder)


@walk
def test_ctranslate2(tmp_path: Path, kind: str, name: str, value: object) -> None:
    network = made(kind, name, value)
    model = saved(network, tmp_path / "model")
    if obstacle := obstacle_of("ctranslate2", network, name):
        with pytest.raises(ModelError, match=re.escape(obstacle)):
            ctranslate2.export_ctranslate2(model, tmp_path / "there")
        with pytest.raises(ModelError, match=re.escape(obstacle)):
            export_argos(model, tmp_path / "there.argosmodel")
        assert [file.name for file in tmp_path.iterdir()] == ["model"]
        return
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed; it is an optional extra")
    assert ctranslate2.export_ctranslate2(model, tmp_path / "there") < 2e-4


@walk
def test_huggingface(tmp_path: Path, kind: str, name: str, value: object) -> None:
    network = made(kind, name, value)
    model = saved(network, tmp_path / "model")
    if obstacle := obstacle_of("huggingface", network, name):
        with pytest.raises(ModelError, match=re.escape(obstacle)):
            huggingface.export_huggingface(model, tmp_path / "there")
        assert not (tmp_path / "there").exists()
        return
    huggingface.export_huggingface(model, tmp_path / "there")
    marian = Marian(tmp_path / "there", epsilon=1e-6)
    for source, target, expected_TV in zip(SOURCES, TARGETS, plain(network), strict=True):
        logits_TV = marian.logits(torch.tensor(source), torch.tensor(target))
        torch.testing.assert_close(logits_TV.log_softmax(dim=-1), expected_TV, atol=2e-5, rtol=1e-4)


@walk
def test_a_compact_copy_says_what_the_network_is(tmp_path: Path, kind: str, name: str, value: object) -> None:
    network = made(kind, name, value)
    export_compact(saved(network, tmp_path / "model"), tmp_path / "copy", weights="float32")
    copy = load_model(tmp_path / "copy")
    assert copy.description.architecture == network.config
    torch.testing.assert_close(plain(copy.network()), plain(network), atol=0, rtol=0)


def assert_all_decline(config: NetworkConfig, *, naming: str, model: ModelDirectory) -> None:
    for capability, obstacle in CAPABILITIES.items():
        found = obstacle(config)
        assert found is not None, capability
        assert re.search(naming, found), capability
    changed = replace(model, description=model.description.model_copy(update={"architecture": config}))
    there = model.folder.parent / "there.argosmodel"
    exports = (ctranslate2.export_ctranslate2, huggingface.export_huggingface, export_argos, firefox.export_firefox)
    for export in exports:
        with pytest.raises(ModelError, match=naming):
            export(changed, there)
    with pytest.raises(ConfigError, match=naming):
        choose_precision("int8", [config])
    assert choose_precision("auto", [config]) != "int8"


@walk
def test_shapes_are_those_of_the_network(kind: str, name: str, value: object) -> None:
    network = made(kind, name, value)
    shapes = {own: tuple(parameter.shape) for own, parameter in network.named_parameters()}
    assert network.config.parameter_shapes() == shapes


@pytest.mark.parametrize(("kind", "name"), LITERALS)
def test_a_value_that_does_not_exist_is_never_taken_for_another(tmp_path: Path, kind: str, name: str) -> None:
    config = configured(kind, {}).model_copy(update={name: "spiral"})
    model = saved(new_network(configured("transformer", {})), tmp_path / "model")
    # Some capabilities decline all networks but the Transformer.
    naming = f'{name} = "spiral"' if kind == "transformer" else f'{name} = "spiral"|kind = "{config.kind}"'
    assert_all_decline(config, naming=naming, model=model)
    with pytest.raises((AssertionError, KeyError, ValueError)):
        new_network(config)


class Grown(ModelConfig, frozen=True):
    """A Transformer with an option that no capability lists."""

    rotary: bool = False
    """Whether queries and keys are rotated."""


class Other(NetworkConfig, frozen=True):
    """A kind of network that no capability lists."""

    kind: Literal["other"] = "other"

    @property
    def depth(self) -> int:
        """One layer."""
        return 1

    @property
    def title(self) -> str:
        """No title."""
        return ""

    @property
    def in_words(self) -> str:
        """No words."""
        return ""

    def parameter_shapes(self) -> Shapes:
        """No parameters."""
        return {}

    def part_of(self, parameter: str) -> str:
        """No parts."""
        return ""

    def cost(self, source_length: int, target_length: int) -> Cost:
        """No cost."""
        raise NotImplementedError


@pytest.mark.parametrize(
    ("config", "naming"),
    [
        (Grown(rotary=True), "rotary = true"),
        (ModelConfig().model_copy(update={"rotary": False}), "rotary = false"),
        (Other(), 'kind = "other"'),
    ],
)
def test_a_new_option_and_a_new_kind_are_declined_until_they_are_listed(
    tmp_path: Path, config: NetworkConfig, naming: str
) -> None:
    model = saved(new_network(configured("transformer", {})), tmp_path / "model")
    assert_all_decline(config, naming=naming, model=model)


def test_a_new_option_at_its_default_changes_no_answer() -> None:
    for obstacle in CAPABILITIES.values():
        assert obstacle(Grown()) == obstacle(ModelConfig())
