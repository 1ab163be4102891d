"""A torch network behind the interface of search: numpy ids in, numpy log-probabilities out."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.networks.log_probabilities import log_softmax
from transduce.networks.network import Network
from transduce.networks.stepwise import BestExtensions, Ids, LogProbabilities
from transduce.special_tokens import SpecialTokens


class TorchStepper:
    """A network, one position at a time, on the device where it is."""

    def __init__(self, network: Network) -> None:
        assert not network.training, "dropout would disturb the search: call network.eval() first"
        self.network = network
        self.prefers_ranking = network.output.matrix_VD.device.type != "cpu"

    @property
    def source_padding(self) -> int:
        """The network's padding id, which both sides share."""
        return self.network.tokens.padding

    @property
    def tokens(self) -> SpecialTokens:
        """The network's special tokens."""
        return self.network.tokens

    def longest_target(self, source_length: int) -> int | None:
        """Return the network's bound."""
        return self.network.longest_target(source_length)

    @torch.no_grad()  # inference_mode would leave tables in the network that later training cannot use
    def start(self, source_BS: Ids) -> Any:  # noqa: ANN401
        """Encode the sources."""
        return self.network.start(self._tensor(source_BS))

    @torch.no_grad()
    def step(self, state: Any, tokens_BW: Ids) -> LogProbabilities:  # noqa: ANN401
        """Decode one more position; the softmax is in float32, or in float64 if the network is."""
        log_probabilities_BWV: LogProbabilities = self._log_probabilities(state, tokens_BW).cpu().numpy()
        return log_probabilities_BWV

    @torch.no_grad()
    def step_best(
        self,
        state: Any,  # noqa: ANN401
        tokens_BW: Ids,
        alive_BW: LogProbabilities,
        *,
        count: int,
        forbidden: Sequence[int],
    ) -> BestExtensions:
        """Decode one more position and choose the best extensions on the network's device."""
        log_probabilities_BWV = self._log_probabilities(state, tokens_BW)
        log_probabilities_BWV[..., list(forbidden)] = -math.inf
        sums_BN = (log_probabilities_BWV + self._tensor(alive_BW)[..., None]).flatten(start_dim=1)
        best_BC, position_BC = (both.cpu().numpy() for both in _stable_topk(sums_BN, count=count))
        return BestExtensions(best_BC, *np.divmod(position_BC, log_probabilities_BWV.size(-1)))

    @torch.no_grad()
    def select(self, state: Any, sentences_B: Ids, beams_BW: Ids) -> Any:  # noqa: ANN401
        """Select in the network's state."""
        return self.network.select(state, self._tensor(sentences_B), self._tensor(beams_BW))

    def _log_probabilities(self, state: Any, tokens_BW: Ids) -> Tensor:  # noqa: ANN401
        hidden_BWD = self.network.advance(state, self._tensor(tokens_BW))
        return log_softmax(self.network.output.logits(hidden_BWD))

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.network.output.matrix_VD.device)


def _stable_topk(values_BN: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest values (all if fewer), largest first, and their positions; ties by position.

    torch.topk is fast but promises no order among equals. Equals are rare; only when there are any, we sort stably.
    """
    size = values_BN.size(1)
    count = min(count, size)
    best_BC, position_BC = values_BN.topk(min(count + 1, size), dim=1)
    if bool((best_BC[:, 1:] == best_BC[:, :-1]).any()):
        best_BC, position_BC = values_BN.sort(dim=1, descending=True, stable=True)
    return best_BC[:, :count], position_BC[:, :count]
