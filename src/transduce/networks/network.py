"""The base class of all networks, which training, search, inspection and model directories use.

A network computes p(y_t | x, y_<t) as softmax(output layer(hidden vector at t)). For training it computes the hidden
vectors of a whole pair at once; for search, of one position at a time from a decoding state.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transduce.networks.attention_block import AttentionBlock
from transduce.networks.attention_sublayer import record_attention
from transduce.networks.config import NetworkConfig
from transduce.networks.output import Output
from transduce.special_tokens import OWN_SPECIAL_TOKENS, SpecialTokens


@dataclass(frozen=True)
class MatrixView:
    """The shape of a parameter as a stack of matrices, for Muon: (blocks, rows, columns).

    A linear map is one block. If one parameter holds several gates of a recurrent unit, each gate is a block.
    """

    name: str
    shape: tuple[int, int, int]


class Network(nn.Module):
    """A network that predicts target tokens from a source and the target tokens before them."""

    def __init__(self, config: NetworkConfig, tokens: SpecialTokens = OWN_SPECIAL_TOKENS) -> None:
        super().__init__()
        self.config, self.tokens = config, tokens

    @property
    @abstractmethod
    def output(self) -> Output:
        """The layer that turns hidden vectors into logits."""

    @abstractmethod
    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the hidden vectors that predict the labels `target_BT`, shape (B, T, D)."""

    @abstractmethod
    def start(self, source_BS: Tensor) -> Any:  # noqa: ANN401 - each network has a state of its own
        """Return the decoding state of a padded batch of sources before any target token, with one beam each."""

    @abstractmethod
    def advance(self, state: Any, tokens_BW: Tensor) -> Tensor:  # noqa: ANN401
        """Feed each beam its newest token; return the hidden vector that predicts the next, shape (B, W, D)."""

    def select(self, state: Any, sentences_B: Tensor, beams_BW: Tensor) -> Any:  # noqa: ANN401
        """Return the state of the named sentences and, for each, the named ones of its beams (see `Stepwise`).

        The default asks the state, which has a method of this name.
        """
        return state.select(sentences_B, beams_BW)

    @property
    def longest_sentence(self) -> int | None:
        """The most tokens that a sentence of either side may have, or None if there is no bound."""
        return self.config.longest_sentence

    def longest_target(self, source_length: int) -> int | None:
        """Return the most tokens that can be predicted for a source of this length, or None if there is no bound."""
        return self.longest_sentence

    def attention(self, source: Sequence[int], target: Sequence[int]) -> Mapping[str, AttentionBlock]:
        """Return the attention of one pair by kind, empty for a network that does not attend.

        `target` are the labels, their end token included. The default records every `AttentionSublayer`; a network with
        attention of another form overrides it.
        """
        return record_attention(self, source, target)

    def statistics(self) -> Iterable[Tensor]:
        """Return the parameters that a forward pass changes in training, such as running means; by default none."""
        return ()

    def matrices(self) -> Iterable[MatrixView]:
        """Return the parameters that Muon moves as matrices; Adam moves the others."""
        return ()


def offset_by_one(target_BT: Tensor, *, start: int) -> Tensor:
    """Return the decoder's inputs for labels `target_BT`: the start token, then every label but the last."""
    start_B1 = target_BT.new_full((target_BT.size(0), 1), start)
    return torch.cat([start_B1, target_BT[:, :-1]], dim=1)
