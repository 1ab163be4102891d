"""Language modelling, the first example in the paper's introduction: a decoder against an LSTM in equal time.

Both read the same text by character, in blocks drawn at random, with the same optimiser, and have about 800,000
parameters (`gpt-tiny` without Muon). Each trains for ten minutes of processor time; every tenth of it the loss on the
last tenth of the text is noted. Departure: the paper trains no language model.
"""

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.data.formats import Corpus, CorpusFile
from transduce.model.language_model import LanguageModel
from transduce.model.language_model_config import LanguageModelConfig
from transduce.paper.finding import Finding, StudyContext

SECONDS, NOTES = 600.0, 10
BLOCK, BLOCKS, RATE, WARM_UP = 64, 12, 2e-3, 0.02


class Recurrent(nn.Module):
    """Two layers of torch's LSTM between an embedding and the same matrix as output."""

    def __init__(self, symbols: int, *, width: int = 222) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.layers = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Return the logits of each next character, shape (B, T - 1, V)."""
        states_BTD: Tensor = self.layers(self.embedding(tokens_BT[:, :-1]))[0]
        return functional.linear(states_BTD, self.embedding.weight)


class Attending(nn.Module):
    """The language model of `gpt-tiny`."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        sizes = {"layers": 4, "heads": 4, "d_model": 128, "learned_positions": BLOCK, "attention_bias": False}
        self.network = LanguageModel(LanguageModelConfig(vocabulary_size=max(5, symbols), dropout=0.0, **sizes))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Return the logits of each next character, shape (B, T - 1, V)."""
        hidden_BTD = self.network(tokens_BT[:, :1], tokens_BT[:, 1:])
        return self.network.output.logits(hidden_BTD)


NETWORKS: dict[str, Callable[[int], nn.Module]] = {"Transformer": Attending, "LSTM": Recurrent}


def language(kind: str, context: StudyContext) -> Finding | None:
    """Return the loss of a network on held-out text after equal time."""
    text_T, symbols = read_text(context.corpora["train"])
    torch.manual_seed(context.seed)
    network = NETWORKS[kind](symbols)
    points = losses(network, text_T, context, seconds=SECONDS)
    unit = f"nats a character on the last tenth of the text, after {SECONDS / 60:g} minutes of processor time"
    return None if points is None else Finding(points[-1][1], unit, points=points)


def read_text(name: str) -> tuple[Tensor, int]:
    """Return the characters of a plain text, or of the sources of a corpus, as ids, and how many kinds there are."""
    path = Path(name)
    is_plain = CorpusFile(path).kind in (".txt", "")
    lines = CorpusFile(path).lines() if is_plain else (pair.source for pair in Corpus(name).pairs())
    text = "\n".join(lines)
    ids = {character: number for number, character in enumerate(sorted(set(text)), start=5)}  # after special tokens
    return torch.tensor([ids[character] for character in text]), len(ids) + 5


def losses(network: nn.Module, text_T: Tensor, context: StudyContext, *, seconds: float) -> list[list[float]] | None:
    """Train for so much processor time; return (minutes, loss) at each note, or None if it was stopped."""
    ends = int(0.9 * len(text_T))
    train_T, held_out_T = text_T[:ends], text_T[ends:]
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=0.1)
    generator = torch.Generator().manual_seed(context.seed)
    points: list[list[float]] = []
    spent = 0.0
    while spent < seconds:
        began = time.process_time()
        if context.stop_requested():
            return None
        share = spent / seconds
        optimizer.param_groups[0]["lr"] = RATE * min(share / WARM_UP, 1.0, 1.1 - share)
        starts_B = torch.randint(len(train_T) - BLOCK - 1, (BLOCKS,), generator=generator)
        tokens_BT = torch.stack([train_T[start : start + BLOCK + 1] for start in starts_B.tolist()])
        optimizer.zero_grad()
        functional.cross_entropy(network(tokens_BT).flatten(0, 1), tokens_BT[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        spent += time.process_time() - began
        if spent >= seconds * (len(points) + 1) / NOTES:
            points.append([round(spent / 60, 1), held_out_loss(network, held_out_T)])
    return points


@torch.no_grad()
def held_out_loss(network: nn.Module, text_T: Tensor) -> float:
    """Return the mean loss over all whole blocks of a text."""
    blocks_NT = text_T.unfold(0, BLOCK + 1, BLOCK)
    total = sum(
        functional.cross_entropy(network(part_BT).flatten(0, 1), part_BT[:, 1:].flatten(), reduction="sum").item()
        for part_BT in blocks_NT.split(256)
    )
    return total / (len(blocks_NT) * BLOCK)
