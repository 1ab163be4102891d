"""The beam searches of one sentence, recorded so that a page can repeat each of them without the model.

A record holds, for every prefix that a search of some width and length penalty feeds to the model, the tokens that the
search can choose from: the 2 · beam best (`decoding/beam_search.py`). Log-probabilities are rounded before the search,
so the page's search of the same numbers finds the same hypotheses. `web/beam.js` is that search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import DecodingConfig
from transduce.inspection.contract import ContractEntry
from transduce.inspection.tokens import name_of
from transduce.networks.log_probabilities import log_softmax
from transduce.networks.network import Network
from transduce.networks.stepwise import Ids, LogProbabilities
from transduce.special_tokens import SpecialTokens
from transduce.text.tokenizer import Tokenizer

WIDEST = 5
ALPHAS = tuple(round(0.2 * step, 1) for step in range(11))
EXTRA = 12
"""Tokens by which an output may be longer than its source; the paper allows 50, of which a page would show nothing."""
DIGITS = 5

Prefix = tuple[int, ...]


class SearchEntry(ContractEntry):
    """The record of the searches of one sentence."""

    end: int
    """The id of the end token."""
    limit: int
    """The most tokens of an output, its end token included."""
    widest: int
    """The largest beam width."""
    alphas: list[float]
    """The exponents α of the length penalty."""
    names: dict[int, str]
    """The printable form of each token."""
    nodes: dict[str, list[tuple[int, float]]]
    """By prefix (ids with dots between them): the best tokens and their log-probabilities, best first."""


@dataclass
class _RecordedModel:
    """A model of one sentence whose state is the prefixes themselves; each prefix is computed once."""

    network: Network
    source: Sequence[int]
    known: dict[Prefix, LogProbabilities] = field(default_factory=dict)

    @property
    def source_padding(self) -> int:
        return self.network.tokens.padding

    @property
    def tokens(self) -> SpecialTokens:
        return self.network.tokens

    def longest_target(self, source_length: int) -> int | None:
        return self.network.longest_target(source_length)

    def start(self, source_BS: Ids) -> list[Prefix]:
        return []

    def step(self, state: list[Prefix], tokens_BW: Ids) -> LogProbabilities:
        tokens = tokens_BW[0].tolist()
        state[:] = [(*prefix, token) for prefix, token in zip(state, tokens, strict=True)] if state else [()]
        self._learn([prefix for prefix in state if prefix not in self.known])
        return np.stack([self.known[prefix] for prefix in state])[None].copy()

    def select(self, state: list[Prefix], sentences_B: Ids, beams_BW: Ids) -> list[Prefix]:
        return [state[beam] for beam in beams_BW[0].tolist()]

    @torch.no_grad()
    def _learn(self, prefixes: Sequence[Prefix]) -> None:
        if not prefixes:
            return
        source_BS = torch.tensor([list(self.source)] * len(prefixes))
        # The last label only marks the position to predict: no position sees its own label.
        labels_BT = torch.tensor([[*prefix, self.tokens.end] for prefix in prefixes])
        log_BV = log_softmax(self.network.output.logits(self.network(source_BS, labels_BT)[:, -1]))
        rounded = np.round(log_BV.double().numpy(), DIGITS)
        rounded[:, list(self.tokens.never_generated)] = -np.inf
        self.known.update(zip(prefixes, rounded, strict=True))


def record_searches(network: Network, source: Sequence[int], tokenizer: Tokenizer) -> SearchEntry:
    """Return the record of every search with a width to WIDEST and an α of ALPHAS; `tokenizer` is that of the targets.

    Outputs end at `limit` tokens.
    """
    model = _RecordedModel(network, source)
    limit = min(len(source) + EXTRA, model.longest_target(len(source)) or len(source) + EXTRA)
    for beam in range(1, WIDEST + 1):
        for alpha in ALPHAS:
            beam_search(model, np.array([list(source)]), searched_with(beam, alpha, limit))
    nodes = {}
    for prefix, log_V in model.known.items():
        best = np.argsort(-log_V, kind="stable")[: 2 * WIDEST].tolist()  # of equals the lower token first
        nodes[".".join(map(str, prefix))] = [(token, float(log_V[token])) for token in best if log_V[token] > -np.inf]
    names = {token: name_of(tokenizer, token) for node in nodes.values() for token, _ in node}
    end = model.tokens.end
    return SearchEntry(end=end, limit=limit, widest=WIDEST, alphas=list(ALPHAS), names=names, nodes=nodes)


def searched_with(beam: int, alpha: float, limit: int) -> DecodingConfig:
    """Return the settings of one recorded search."""
    return DecodingConfig(beam=beam, length_penalty=alpha, maximum_length=limit)
