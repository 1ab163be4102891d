"""How far back two layers of each kind learn to look: the consequence of Table 1's path lengths.

A sequence begins with one of eight symbols, marked; other symbols follow; the last position must name the first. Each
kind has two layers of together about 100,000 parameters, learned positions, and the same batches, steps and rate. A
share of 1/8 right answers is chance. Departure: the paper gives path lengths and trains nothing.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from transduce.model.config import ModelConfig
from transduce.model.layers import EncoderLayer
from transduce.paper.finding import Finding, StudyContext
from transduce.rivals.convs2s import GatedLayer

SYMBOLS, DISTANCES, LAYERS = 8, (8, 16, 32, 64, 128), 2
STEPS, PAIRS, RATE = 300, 32, 2e-3


class GatedResidual(nn.Module):
    """A gated convolution over three positions (ConvS2S), with its residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = GatedLayer(width, width, kernel=3, dropout=0.0)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Return the layer's output, shape (B, T, D)."""
        mixed_BTD: Tensor = (self.layer(x_BTD, side="centred") + x_BTD) * 0.5**0.5
        return mixed_BTD


class Recurrent(nn.Module):
    """A layer of torch's LSTM."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(width, width, batch_first=True)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Return h after each position."""
        states_BTD: Tensor = self.layer(x_BTD)[0]
        return states_BTD


def _attending(width: int, *, neighbourhood: int | None = None) -> EncoderLayer:
    sizes = ModelConfig(
        vocabulary_size=8, d_model=width, heads=4, d_ff=4 * width, dropout=0.0, norm="pre", neighbourhood=neighbourhood
    )
    return EncoderLayer(sizes)


def layer_of(kind: str) -> nn.Module:
    """Return one layer of a kind, about 50,000 parameters."""
    makers: Mapping[str, Callable[[], nn.Module]] = {
        "self-attention": lambda: _attending(64),
        "self-attention (restricted)": lambda: _attending(64, neighbourhood=16),
        "recurrent": lambda: Recurrent(80),
        "convolutional": lambda: GatedResidual(92),
    }
    return makers[kind]()


class Recaller(nn.Module):
    """Embeddings with positions, two layers, and eight logits at the last position."""

    def __init__(self, kind: str, *, length: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(layer_of(kind) for _ in range(LAYERS)))
        width = {"self-attention": 64, "self-attention (restricted)": 64, "recurrent": 80, "convolutional": 92}[kind]
        self.symbols, self.positions = nn.Embedding(2 * SYMBOLS, width), nn.Embedding(length, width)
        self.readout = nn.Linear(width, SYMBOLS)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Return the logits of the first symbol, shape (B, 8)."""
        embedded_BTD = self.symbols(tokens_BT) + self.positions.weight
        logits_BV: Tensor = self.readout(self.layers(embedded_BTD)[:, -1])
        return logits_BV


def _batch(length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    tokens_BT = torch.randint(SYMBOLS, (PAIRS, length), generator=generator)
    first_B = tokens_BT[:, 0].clone()
    tokens_BT[:, 0] += SYMBOLS  # the mark
    return tokens_BT, first_B


def accuracy(kind: str, distance: int, *, seed: int, steps: int = STEPS) -> float:
    """Train at one distance; return the share of right answers on new sequences."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    network = Recaller(kind, length=distance + 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    for _ in range(steps):
        tokens_BT, first_B = _batch(distance + 1, generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(tokens_BT), first_B).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        tests = [_batch(distance + 1, generator) for _ in range(8)]
        return float(
            torch.cat([network(tokens_BT).argmax(-1) == first_B for tokens_BT, first_B in tests]).float().mean()
        )


def recall(kind: str, context: StudyContext) -> Finding | None:
    """Return how often a kind of layer is right at the greatest distance, and at each."""
    points = []
    for distance in DISTANCES:
        if context.stop_requested():
            return None
        points.append([float(distance), accuracy(kind, distance, seed=context.seed)])
    unit = f"share of right answers at distance {DISTANCES[-1]} after {STEPS} steps; chance is {1 / SYMBOLS:g}"
    return Finding(points[-1][1], unit, points=points)
