"""The kinds of network that an experiment may name, and what their configurations have in common.

A new network needs an entry in `CONFIGS` and `AnyConfig` here, and one in `torch_networks.py`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from transduce.model.config import ModelConfig
from transduce.model.language_model_config import LanguageModelConfig
from transduce.model.text_encoder_config import TextEncoderConfig
from transduce.networks.config import NetworkConfig
from transduce.networks.cost import parameter_count
from transduce.networks.handled import Handled
from transduce.rivals.bytenet_config import ByteNetConfig
from transduce.rivals.convs2s_config import ConvS2SConfig
from transduce.rivals.gnmt_config import GnmtConfig
from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.luong_config import LuongConfig
from transduce.rivals.memory_network_config import MemoryNetworkConfig
from transduce.rivals.neural_gpu_config import NeuralGpuConfig
from transduce.rivals.rnnsearch_config import RnnSearchConfig

Config = TypeVar("Config", bound=NetworkConfig)

CONFIGS: Mapping[str, type[NetworkConfig]] = {
    "transformer": ModelConfig,
    "lstm": LstmConfig,
    "rnnsearch": RnnSearchConfig,
    "luong": LuongConfig,
    "gnmt": GnmtConfig,
    "convs2s": ConvS2SConfig,
    "bytenet": ByteNetConfig,
    "neural-gpu": NeuralGpuConfig,
    "memory-network": MemoryNetworkConfig,
    "language-model": LanguageModelConfig,
}

FORMAT_1 = Handled(
    "transformer",
    {
        **dict.fromkeys(("vocabulary_size", "layers", "encoder_layers", "decoder_layers", "d_model", "d_ff"), "any"),
        **dict.fromkeys(("heads", "d_k", "d_v", "learned_positions"), "any"),
        **dict.fromkeys(("dropout", "attention_dropout", "feed_forward_dropout"), "any"),
        "norm": ("post", "pre"),
        "positions": ("sinusoidal", "concatenated", "learned", "none"),
        "scores": ("scaled", "unscaled", "additive"),
        "attention_bias": (False, True),
        "activation": ("relu", "gelu"),
        "tied": ("all", "decoder", "inputs", "none"),
    },
)
"""The networks that format 1 of model directories can describe: its keys and their values."""

_AUTHORS_VOCABULARY, _AUTHORS_TARGET_SPACES = 40_960, 32


def _with_default_kind(value: object) -> object:
    return {"kind": "transformer", **value} if isinstance(value, Mapping) else value


_Networks = (
    ModelConfig
    | LstmConfig
    | RnnSearchConfig
    | LuongConfig
    | GnmtConfig
    | ConvS2SConfig
    | ByteNetConfig
    | NeuralGpuConfig
    | MemoryNetworkConfig
    | LanguageModelConfig
)
AnyConfig = Annotated[
    Annotated[_Networks, Field(discriminator="kind")],
    BeforeValidator(_with_default_kind),
]
"""The sizes of a network of any kind, told apart by `kind`, which is `transformer` unless given."""
StoredConfig = Annotated[
    Annotated[_Networks | TextEncoderConfig, Field(discriminator="kind")],
    BeforeValidator(_with_default_kind),
]
"""The sizes of what a model directory may hold: a network, or a text encoder, which is not trained here."""


def without_kind(location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return a pydantic error's location as a user writes it: section and key, without the kind between them."""
    return tuple(part for place, part in enumerate(location) if place != 1 or part not in CONFIGS)


def stated(config: NetworkConfig) -> dict[str, Any]:
    """Return the keys that describe this network, as JSON values.

    Keys of the Transformer that came after format 1 are left out at their defaults, so that older versions can read the
    result, and so that it equals what older versions wrote.
    """
    keys = config.model_dump(mode="json")
    if not isinstance(config, ModelConfig):
        return keys
    defaults = ModelConfig().model_dump(mode="json")
    return {key: value for key, value in keys.items() if key in FORMAT_1.options or value != defaults[key]}


def has_source_vocabulary(config: NetworkConfig) -> bool:
    """Return whether this kind of network can have a vocabulary for sources alone."""
    return "source_vocabulary_size" in type(config).model_fields


def own_source_vocabulary(config: NetworkConfig) -> int | None:
    """Return the number of ids of the sources if these have a vocabulary of their own."""
    size: int | None = getattr(config, "source_vocabulary_size", None)
    return size


def with_vocabularies(config: Config, *, target: int, source: int | None) -> Config:
    """Return the config with the sizes of its vocabularies; `source` is None if both sides share one."""
    assert source is None or has_source_vocabulary(config), "ExperimentConfig refuses two vocabularies for this network"
    own = {"source_vocabulary_size": source} if has_source_vocabulary(config) else {}
    return config.model_copy(update={"vocabulary_size": target, **own})


def authors_parameter_count(config: ModelConfig) -> int:
    """Return the count that Table 3 prints: that of the authors' first code.

    It rounded the vocabulary up, had biases in attention, and a table of 32 target-space vectors added to every input.
    """
    as_coded = config.model_copy(update={"vocabulary_size": _AUTHORS_VOCABULARY, "attention_bias": True})
    return parameter_count(as_coded) + _AUTHORS_TARGET_SPACES * config.d_model


def is_text_encoder(config: NetworkConfig) -> bool:
    """Return whether a model is a text encoder, which fills masks and gives vectors but predicts no target."""
    return isinstance(config, TextEncoderConfig)


def reads_text_alone(config: NetworkConfig) -> bool:
    """Return whether a network of this kind is a language model: it learns from text without translations."""
    return isinstance(config, LanguageModelConfig)
