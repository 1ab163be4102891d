"""Time a training step of the recurrent rivals beside the same networks written with torch.nn's cells in a plain loop.

    python benchmarks/recurrent.py

Forward and backward pass of 64 pairs of 20 tokens in float32, alternately, medians of the processor time. The output
layer is left out: it is the same product in both.
"""

import statistics
import time

import torch
from torch import Tensor, nn

from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.rnnsearch_config import RnnSearchConfig
from transduce.torch_networks import new_network

PAIRS, LENGTH, ROUNDS = 64, 20, 9


class LoopLstm(nn.Module):
    """The LSTM without attention, with nn.LSTMCell."""

    def __init__(self, vocabulary: int, d: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d)
        self.encoder, self.decoder = (nn.ModuleList(nn.LSTMCell(d, d) for _ in range(layers)) for _ in range(2))

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the top layer's h at each target position."""
        zeros_BD = torch.zeros(source_BS.size(0), self.embedding.embedding_dim)
        states, outputs = [(zeros_BD, zeros_BD) for _ in self.encoder], []
        for tokens_B in source_BS.flip(1).T:
            self._step(self.encoder, tokens_B, states)
        for tokens_B in target_BT.T:
            outputs.append(self._step(self.decoder, tokens_B, states))
        return torch.stack(outputs, dim=1)

    def _step(self, cells: nn.ModuleList, tokens_B: Tensor, states: list[tuple[Tensor, Tensor]]) -> Tensor:
        x_BD = self.embedding(tokens_B)
        for layer, cell in enumerate(cells):
            states[layer] = cell(x_BD, states[layer])
            x_BD = states[layer][0]
        return x_BD


class LoopSearch(nn.Module):
    """RNNsearch, with nn.GRUCell."""

    def __init__(self, config: RnnSearchConfig) -> None:
        super().__init__()
        d, e, a = config.d_model, config.embedding_width, config.alignment_width
        self.embedding = nn.Embedding(config.vocabulary_size, e)
        self.reader, self.backward_reader, self.writer = nn.GRUCell(e, d), nn.GRUCell(e, d), nn.GRUCell(e + 2 * d, d)
        self.W_a, self.U_a, self.v = nn.Linear(d, a), nn.Linear(2 * d, a), nn.Linear(a, 1)
        self.first, self.readout = nn.Linear(d, d), nn.Linear(3 * d + e, 2 * config.output_width)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label."""
        embedded_BSE = self.embedding(source_BS)
        ways = []
        for cell, x_BSE in ((self.reader, embedded_BSE), (self.backward_reader, embedded_BSE.flip(1))):
            state_BD, states = torch.zeros(source_BS.size(0), cell.hidden_size), []
            for x_BE in x_BSE.unbind(1):
                state_BD = cell(x_BE, state_BD)
                states.append(state_BD)
            ways.append(torch.stack(states, dim=1))
        annotations_BSN = torch.cat([ways[0], ways[1].flip(1)], dim=-1)
        keys_BSA = self.U_a(annotations_BSN)
        state_BD, outputs = self.first(ways[1][:, -1]).tanh(), []
        for x_BE in self.embedding(target_BT).unbind(1):
            weights_BS1 = self.v((self.W_a(state_BD)[:, None] + keys_BSA).tanh()).softmax(dim=1)
            context_BN = (weights_BS1 * annotations_BSN).sum(1)
            read_BO = self.readout(torch.cat([state_BD, x_BE, context_BN], dim=-1))
            outputs.append(read_BO.unflatten(-1, (-1, 2)).amax(-1))
            state_BD = self.writer(torch.cat([x_BE, context_BN], dim=-1), state_BD)
        return torch.stack(outputs, dim=1)


def step_time(network: nn.Module, source_BS: Tensor, target_BT: Tensor) -> float:
    """Return the processor seconds of one forward and backward pass."""
    start = time.process_time()
    network(source_BS, target_BT).square().sum().backward()
    return time.process_time() - start


def main() -> None:
    """Print the two times of each network and their ratio."""
    torch.set_num_threads(1)
    lstm = LstmConfig(vocabulary_size=8000, d_model=376, layers=2)
    search = RnnSearchConfig(
        vocabulary_size=8000, d_model=448, embedding_width=256, alignment_width=448, output_width=256
    )
    pairs = {
        "lstm": (new_network(lstm), LoopLstm(lstm.vocabulary_size, lstm.d_model, lstm.layers)),
        "rnnsearch": (new_network(search), LoopSearch(search)),
    }
    source_BS, target_BT = (torch.randint(4, 8000, (PAIRS, LENGTH)) for _ in range(2))
    for name, networks in pairs.items():
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for network, taken in zip(networks, times, strict=True):
                taken.append(step_time(network, source_BS, target_BT))
        ours, theirs = (statistics.median(taken[1:]) for taken in times)
        print(f"{name}: {ours * 1000:.0f} ms, plain loop {theirs * 1000:.0f} ms, ratio {theirs / ours:.2f}")


if __name__ == "__main__":
    main()
