"""A language model frozen for generation: the C++ core reads a prompt in one pass, then one token at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.core import has_core
from transduce.engine.frozen_network import (
    FrozenDecoder,
    FrozenNetwork,
    FrozenPrecision,
    FrozenState,
    core_config,
    obstacle,
)
from transduce.engine.precision import Precision
from transduce.model.config import ModelConfig
from transduce.model.language_model_config import LanguageModelConfig
from transduce.networks.config import NetworkConfig
from transduce.networks.stepwise import Ids, LogProbabilities
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


@dataclass
class FrozenText(FrozenState):
    """The core's state of texts, and the last token of each prompt until it is read: the first that predicts."""

    unread_BW: Ids | None = None


class FrozenLanguageModel(FrozenDecoder):
    """A language model with packed weights, ready to write."""

    def __init__(
        self,
        parameters: Mapping[str, NDArray[Any]],
        config: LanguageModelConfig,
        tokens: SpecialTokens = OWN_SPECIAL_TOKENS,
        *,
        precision: FrozenPrecision = "int8",
        instructions: str = "",
    ) -> None:
        assert has_core(), "ask `has_core` first"
        assert obstacle(config) is None, f"ask `obstacle` first: {obstacle(config)}"
        self.config = config
        options = core_config(config.of_layers, tokens, precision)
        options.has_source, options.encoder_layers, options.source_vocabulary_size = False, 0, 0
        named = {name.replace("embeddings.source_VD", "embeddings.target_VD"): own for name, own in parameters.items()}
        super().__init__(named, tokens, options, instructions)

    def longest_target(self, source_length: int) -> int | None:
        """Return how many tokens can follow a prompt; the last of them is not read."""
        longest = self.config.longest_sentence
        return None if longest is None else max(0, longest - source_length + 1)

    def start(self, source_BS: Ids) -> FrozenState:
        """Read the prompts, all but the last token of each, in one pass."""
        last_B1 = (source_BS != self.tokens.padding).sum(axis=1, keepdims=True) - 1
        unread_B1 = np.take_along_axis(source_BS, last_B1, axis=1)
        read_BS = np.where(np.arange(source_BS.shape[1]) < last_B1, source_BS, self.tokens.padding)
        return FrozenText(self._network.start(np.ascontiguousarray(read_BS)), unread_BW=unread_B1)

    def step(self, state: FrozenState, tokens_BW: Ids) -> LogProbabilities:
        """Read one more token of each beam; the first is the prompt's last, in place of the start token."""
        assert isinstance(state, FrozenText), "`start` returned it"
        if state.unread_BW is not None:
            tokens_BW, state.unread_BW = state.unread_BW, None
        return super().step(state, tokens_BW)

    def select(self, state: FrozenState, sentences_B: Ids, beams_BW: Ids) -> FrozenState:
        """Make each new beam continue the named old one (see `Stepwise`)."""
        assert isinstance(state, FrozenText), "`start` returned it"
        if state.unread_BW is not None:
            state.unread_BW = state.unread_BW[sentences_B[:, None], beams_BW]
        return super().select(state, sentences_B, beams_BW)


def freeze(
    parameters: Mapping[str, NDArray[Any]], config: NetworkConfig, tokens: SpecialTokens, *, precision: Precision
) -> FrozenNetwork | FrozenLanguageModel:
    """Return a network or a language model with packed weights."""
    assert precision != "bf16", "can_be_frozen declines bf16"
    if isinstance(config, LanguageModelConfig):
        return FrozenLanguageModel(parameters, config, tokens, precision=precision)
    assert isinstance(config, ModelConfig), "can_be_frozen declines other networks"
    return FrozenNetwork(parameters, config, tokens, precision=precision)
