"""A network of torch as a model that search can ask: numpy in, log-probabilities in numpy out."""

from typing import Any

import numpy as np
import torch

from transduce.networks.log_probabilities import log_softmax
from transduce.networks.network import Network
from transduce.networks.stepwise import Ids, LogProbabilities


class TorchStepper:
    """A network, one position at a time, on the device where it is."""

    def __init__(self, network: Network) -> None:
        assert not network.training, "dropout would disturb the search: call network.eval() first"
        self.network = network

    def longest_target(self, source_length: int) -> int | None:
        """Return the network's own bound."""
        return self.network.longest_target(source_length)

    @torch.no_grad()  # inference_mode would leave tables in the network that it could not be trained with afterwards
    def start(self, source_BS: Ids) -> Any:  # noqa: ANN401
        """Encode the sources."""
        return self.network.start(self._tensor(source_BS))

    @torch.no_grad()
    def step(self, state: Any, tokens_BW: Ids) -> LogProbabilities:  # noqa: ANN401
        """Decode one position more; the softmax is taken in float32, or in float64 if the network is."""
        hidden_BWD = self.network.advance(state, self._tensor(tokens_BW))
        log_probabilities: LogProbabilities = log_softmax(self.network.output.logits(hidden_BWD)).cpu().numpy()
        return log_probabilities

    @torch.no_grad()
    def select(self, state: Any, sentences_B: Ids, beams_BW: Ids) -> Any:  # noqa: ANN401
        """Select in the network's state."""
        return self.network.select(state, self._tensor(sentences_B), self._tensor(beams_BW))

    def _tensor(self, ids: Ids) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(ids)).to(self.network.output.matrix_VD.device)
