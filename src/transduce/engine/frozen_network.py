"""Networks frozen for search: the C++ core (`core/`) packs their weights and computes in int8 or float32.

`FrozenNetwork` has the interface of search (`start`, `step`, `select`), shortlists (`restrict`), and the whole beam
search in C++ (`beam_search`). Several threads may use one network at once: the core releases Python's lock.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transduce.core import core, has_core
from transduce.errors import DataError, ModelError
from transduce.model.config import SIZES, ModelConfig
from transduce.networks.beam_searching import BeamRequest
from transduce.networks.config import NetworkConfig
from transduce.networks.handled import Handled
from transduce.networks.stepwise import Booleans, Ids, LogProbabilities, not_numbers
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens

HANDLED = Handled(
    "transformer",
    {
        **SIZES,
        "norm": ("post", "pre"),
        "norm_epsilon": "any",
        "final_norm": (None, False, True),
        "decoder_mixer": ("attention", "ssru"),
        "positions": ("sinusoidal", "sinusoidal_halves", "concatenated", "learned", "none"),
        "first_position": "any",
        "scores": ("scaled", "unscaled"),
        "attention_bias": (False, True),
        "activation": ("relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu"),
        "tied": ("all", "decoder", "inputs", "none"),
        "source_vocabulary_size": "any",
        "embedding_scale": "any",
        "embedding_norm": (False, True),
        "start_from_zeros": (False, True),
        "output_bias": (False, True),
    },
)
HANDLED_TEXT = Handled(
    "language-model",
    {
        **SIZES,
        "norm": ("post", "pre"),
        "norm_epsilon": "any",
        "positions": ("sinusoidal", "learned", "none"),
        "attention_bias": (False, True),
        "activation": ("relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu"),
        "tied": (False, True),
        "embedding_scale": "any",
        "output_bias": (False, True),
    },
)
FrozenPrecision = Literal["int8", "float32"]


def obstacle(config: NetworkConfig) -> str | None:
    """Return the options of a network that the core does not implement, or None."""
    return (HANDLED_TEXT if config.kind == HANDLED_TEXT.kind else HANDLED).obstacle(config)


@dataclass
class FrozenState:
    """The core's state of a batch, and how many beams each sentence has."""

    inner: Any
    beams: int = 1


class FrozenDecoder:
    """A network with packed weights, one position at a time."""

    def __init__(
        self, parameters: Mapping[str, NDArray[Any]], tokens: SpecialTokens, options: "core.Config", instructions: str
    ) -> None:
        self.tokens = tokens
        try:
            self._network = core.Network(options, parameters, instructions)
        except ValueError as fault:  # such as a width beyond the core's bounds
            raise ModelError(f"The C++ core cannot hold this model: {fault}.") from None

    @property
    def source_padding(self) -> int:
        """The padding that both sides share."""
        return self.tokens.padding

    @property
    def instructions(self) -> str:
        """The name of the instruction set in use."""
        return self._network.instructions

    def step(self, state: FrozenState, tokens_BW: Ids) -> LogProbabilities:
        """Decode one more position of every beam; the result is a view of the state's memory."""
        try:
            log_probabilities_BWV = self._network.step(state.inner, np.ascontiguousarray(tokens_BW))
        except core.NotNumbers:
            raise not_numbers() from None
        state.beams = tokens_BW.shape[1]
        return log_probabilities_BWV

    def select(self, state: FrozenState, sentences_B: Ids, beams_BW: Ids) -> FrozenState:
        """Make each new beam continue the named old one (see `Stepwise`)."""
        own = np.ascontiguousarray(sentences_B), np.ascontiguousarray(beams_BW)
        self._network.select(state.inner, *own, state.beams)
        state.beams = beams_BW.shape[1]
        return state


class FrozenNetwork(FrozenDecoder):
    """A Transformer with packed weights, ready to be searched."""

    def __init__(
        self,
        parameters: Mapping[str, NDArray[Any]],
        config: ModelConfig,
        tokens: SpecialTokens = OWN_SPECIAL_TOKENS,
        *,
        precision: FrozenPrecision = "int8",
        instructions: str = "",
    ) -> None:
        assert has_core(), "ask `has_core` first"
        assert obstacle(config) is None, f"ask `obstacle` first: {obstacle(config)}"
        self.config, self.precision = config, precision
        super().__init__(parameters, tokens, core_config(config, tokens, precision), instructions)

    def longest_target(self, source_length: int) -> int | None:
        """Return the number of learned positions; sinusoids have no bound."""
        return self.config.longest_sentence

    def start(self, source_BS: Ids) -> FrozenState:
        """Encode the sources and keep what the decoder needs of them."""
        self._refuse_long(source_BS)
        return FrozenState(self._network.start(np.ascontiguousarray(source_BS)))

    def attention(self, source: Sequence[int], target: Sequence[int], *, layer: int) -> NDArray[np.float32]:
        """Return a decoder layer's attention over the source while it reads a finished target, shape (T, S).

        It is the mean over the layer's heads.
        """
        rows = self._network.attention(list(source), list(target), layer)
        return np.array(rows, dtype=np.float32).reshape(len(target), len(source))

    def restrict(self, state: FrozenState, lists_BL: Ids, is_padding_BL: Booleans) -> None:
        """Restrict each sentence's output layer to the tokens of its list."""
        lengths = (~is_padding_BL).sum(axis=1).tolist()
        self._network.restrict(state.inner, [own[:n].tolist() for own, n in zip(lists_BL, lengths, strict=True)])

    def beam_search(self, source_BS: Ids, request: BeamRequest) -> list[list[tuple[list[int], float]]]:
        """Search in C++; return the tokens and the log-probability of each sentence's best hypotheses."""
        self._refuse_long(source_BS)
        config = core.SearchConfig()
        config.beam, config.alternatives = request.beam, request.alternatives
        config.length_penalty, config.stops_when_full = request.length_penalty, request.stops_when_full
        config.minimum_length = request.minimum_length
        config.start, config.end = self.tokens.start, self.tokens.end
        config.never_generated = list(self.tokens.never_generated)
        try:
            return self._network.search(
                np.ascontiguousarray(source_BS),
                config,
                request.limits,
                request.prefixes,
                request.lists,
                request.cancellation,
            )
        except core.NotNumbers:
            raise not_numbers() from None

    def _refuse_long(self, source_BS: Ids) -> None:
        limit = self.config.longest_sentence
        longest = int((source_BS != self.tokens.padding).sum(axis=1).max(initial=0))
        if limit is not None and longest > limit:
            raise DataError(
                f"A sentence of {longest} tokens is longer than the {limit} positions that this model has learned. "
                "Split it, or train with more model.learned_positions."
            )


def core_config(config: ModelConfig, tokens: SpecialTokens, precision: FrozenPrecision) -> "core.Config":
    """Return a network's options as the core takes them."""
    options = core.Config()
    options.vocabulary_size = config.vocabulary_size
    options.source_vocabulary_size = config.source_vocabulary_size or config.vocabulary_size
    options.d_model, options.d_ff, options.heads = config.d_model, config.d_ff, config.heads
    options.d_k, options.d_v = config.query_width, config.value_width
    options.encoder_layers, options.decoder_layers = config.encoder_depth, config.decoder_depth
    options.is_pre_norm = {"post": False, "pre": True}[config.norm]
    options.norm_epsilon, options.has_final_norm = config.norm_epsilon, config.has_final_norm
    options.embedding_norm, options.embedding_factor = config.embedding_norm, config.embedding_factor
    options.is_recurrent = {"attention": False, "ssru": True}[config.decoder_mixer]
    options.query_factor = {"scaled": 1.0 / math.sqrt(config.query_width), "unscaled": 1.0}[config.scores]
    options.attention_bias, options.output_bias = config.attention_bias, config.output_bias
    options.start_from_zeros = config.start_from_zeros
    options.first_position, options.learned_positions = config.first_position, config.learned_positions
    options.padding, options.start = tokens.padding, tokens.start
    options.set_positions(config.positions)
    options.set_activation(config.activation)
    options.set_precision(precision)
    return options
