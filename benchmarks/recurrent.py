"""Time a training step of the recurrent rivals beside the same networks written with torch.nn's cells in a plain loop.

    python benchmarks/recurrent.py

Forward and backward pass of 64 pairs of 20 tokens in float32 on one core, at the sizes of the presets, alternately;
medians of the processor time. Dropout and the output layer are left out. Writes results/recurrent.json and .md.
"""

import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from transduce.experiment import resolve_experiment
from transduce.machine import processor_name
from transduce.rivals.gnmt_config import GnmtConfig
from transduce.rivals.lstm_config import LstmConfig
from transduce.rivals.luong_config import LuongConfig
from transduce.rivals.rnnsearch_config import RnnSearchConfig
from transduce.torch_networks import new_network

PAIRS, LENGTH, ROUNDS = 64, 20, 15
RESULTS = Path(__file__).parent / "results"
State = tuple[Tensor, Tensor]


def read(cell: nn.RNNCellBase, x_BSE: Tensor) -> Tensor:
    """Return the cell's h after each position."""
    state, states = None, []
    for x_BE in x_BSE.unbind(1):
        state = cell(x_BE, state)
        states.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(states, dim=1)


def step(cells: nn.ModuleList, x_BE: Tensor, states: list[State | None]) -> Tensor:
    """Advance a stack of LSTMs by one input; return the top layer's h."""
    for layer, cell in enumerate(cells):
        states[layer] = after = cell(x_BE, states[layer])
        x_BE = after[0]
    return x_BE


class Alignment(nn.Module):
    """Additive attention."""

    def __init__(self, query: int, annotation: int, hidden: int) -> None:
        super().__init__()
        self.W_a, self.U_a = nn.Linear(query, hidden, bias=False), nn.Linear(annotation, hidden, bias=False)
        self.v = nn.Linear(hidden, 1, bias=False)

    def forward(self, query_BD: Tensor, keys_BSA: Tensor, annotations_BSN: Tensor) -> Tensor:
        """Return the weighted mean of the annotations."""
        weights_BS1 = self.v((self.W_a(query_BD)[:, None] + keys_BSA).tanh()).softmax(dim=1)
        return (weights_BS1 * annotations_BSN).sum(1)


class LoopLstm(nn.Module):
    """The LSTM without attention; also the stacks of Luong's network."""

    def __init__(self, config: LstmConfig | LuongConfig, *, feeding: int = 0) -> None:
        super().__init__()
        d, layers = config.d_model, config.layers
        self.embedding = nn.Embedding(config.vocabulary_size, d)
        self.encoder = nn.ModuleList(nn.LSTMCell(d, d) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.LSTMCell(d if layer else d + feeding, d) for layer in range(layers))

    def encode(self, source_BS: Tensor) -> tuple[Tensor, list[State | None]]:
        """Read the source from its end; return the top layer's h in the source's order, and the last states."""
        states: list[State | None] = [None] * len(self.encoder)
        tops = [step(self.encoder, x_BE, states) for x_BE in self.embedding(source_BS.flip(1)).unbind(1)]
        return torch.stack(tops[::-1], dim=1), states

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the top layer's h at each target position."""
        _, states = self.encode(source_BS)
        return torch.stack([step(self.decoder, x_BE, states) for x_BE in self.embedding(target_BT).unbind(1)], dim=1)


class LoopLuong(LoopLstm):
    """Luong's network with general scores and input feeding."""

    def __init__(self, config: LuongConfig) -> None:
        super().__init__(config, feeding=config.d_model)
        d = config.d_model
        self.W_a, self.W_c = nn.Linear(d, d, bias=False), nn.Linear(2 * d, d, bias=False)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the attentional vector at each target position."""
        values_BSD, states = self.encode(source_BS)
        keys_BSD, attentional_BD, outputs = self.W_a(values_BSD), torch.zeros_like(values_BSD[:, 0]), []
        for x_BE in self.embedding(target_BT).unbind(1):
            top_BD = step(self.decoder, torch.cat([x_BE, attentional_BD], dim=-1), states)
            weights_BS = (keys_BSD @ top_BD[..., None])[..., 0].softmax(dim=-1)
            context_BD = (weights_BS[:, None] @ values_BSD)[:, 0]
            attentional_BD = self.W_c(torch.cat([context_BD, top_BD], dim=-1)).tanh()
            outputs.append(attentional_BD)
        return torch.stack(outputs, dim=1)


class LoopSearch(nn.Module):
    """RNNsearch, with torch's gated unit, whose reset gate acts after the recurrent matrix."""

    def __init__(self, config: RnnSearchConfig) -> None:
        super().__init__()
        d, e = config.d_model, config.embedding_width
        self.embedding = nn.Embedding(config.vocabulary_size, e)
        self.reader, self.backward_reader, self.writer = nn.GRUCell(e, d), nn.GRUCell(e, d), nn.GRUCell(e + 2 * d, d)
        self.alignment = Alignment(d, 2 * d, config.alignment_width)
        self.first, self.readout = nn.Linear(d, d), nn.Linear(3 * d + e, 2 * config.output_width)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the vector that predicts each label."""
        embedded_BSE = self.embedding(source_BS)
        backward_BSD = read(self.backward_reader, embedded_BSE.flip(1)).flip(1)
        annotations_BSN = torch.cat([read(self.reader, embedded_BSE), backward_BSD], dim=-1)
        keys_BSA, state_BD, outputs = self.alignment.U_a(annotations_BSN), self.first(backward_BSD[:, 0]).tanh(), []
        for x_BE in self.embedding(target_BT).unbind(1):
            context_BN = self.alignment(state_BD, keys_BSA, annotations_BSN)
            read_BO = self.readout(torch.cat([state_BD, x_BE, context_BN], dim=-1))
            outputs.append(read_BO.unflatten(-1, (-1, 2)).amax(-1))
            state_BD = self.writer(torch.cat([x_BE, context_BN], dim=-1), state_BD)
        return torch.stack(outputs, dim=1)


class LoopGnmt(nn.Module):
    """The GNMT-like stack: residual from the third layer on, the context read by every layer of the decoder."""

    def __init__(self, config: GnmtConfig) -> None:
        super().__init__()
        d, layers = config.d_model, config.layers
        self.embedding = nn.Embedding(config.vocabulary_size, d)
        self.reader, self.backward_reader = nn.LSTMCell(d, d), nn.LSTMCell(d, d)
        self.readers = nn.ModuleList(nn.LSTMCell(2 * d if layer == 1 else d, d) for layer in range(1, layers))
        self.writers = nn.ModuleList(nn.LSTMCell(2 * d, d) for _ in range(layers))
        self.alignment = Alignment(d, d, config.alignment_width)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return the top layer's output at each target position."""
        embedded_BSD = self.embedding(source_BS)
        backward_BSD = read(self.backward_reader, embedded_BSD.flip(1)).flip(1)
        x_BSD = torch.cat([read(self.reader, embedded_BSD), backward_BSD], dim=-1)
        for layer, cell in enumerate(self.readers, start=1):
            x_BSD = read(cell, x_BSD) + (x_BSD if layer > 1 else 0.0)  # type: ignore[arg-type]
        keys_BSA, bottom_BD, outputs = self.alignment.U_a(x_BSD), torch.zeros_like(x_BSD[:, 0]), []
        states: list[State | None] = [None] * len(self.writers)
        for x_BD in self.embedding(target_BT).unbind(1):
            context_BD = self.alignment(bottom_BD, keys_BSA, x_BSD)
            for layer, cell in enumerate(self.writers):
                states[layer] = after = cell(torch.cat([x_BD, context_BD], dim=-1), states[layer])
                x_BD = after[0] + x_BD if layer > 1 else after[0]
                bottom_BD = bottom_BD if layer else after[0]
            outputs.append(x_BD)
        return torch.stack(outputs, dim=1)


LOOPS = {"lstm": LoopLstm, "rnnsearch": LoopSearch, "luong": LoopLuong, "gnmt": LoopGnmt}


def step_time(network: nn.Module, source_BS: Tensor, target_BT: Tensor) -> float:
    """Return the processor seconds of one forward and backward pass."""
    start = time.process_time()
    network(source_BS, target_BT).square().sum().backward()
    return time.process_time() - start


def compare(preset: str) -> dict[str, float | str]:
    """Return the median milliseconds of both forms of a preset's network, and the ratio of each round."""
    config = resolve_experiment(preset=preset, overrides=["model.dropout=0"]).model
    networks: Sequence[nn.Module] = (new_network(config), LOOPS[preset](config))
    source_BS, target_BT = (torch.randint(4, config.vocabulary_size, (PAIRS, LENGTH)) for _ in range(2))
    rounds = [[step_time(network, source_BS, target_BT) for network in networks] for _ in range(ROUNDS + 1)][1:]
    ours, loop = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratios = [theirs / mine for mine, theirs in rounds]
    return {
        "network": preset, "milliseconds": round(ours * 1000), "plain loop": round(loop * 1000),
        "ratio": round(loop / ours, 2), "least ratio": round(min(ratios), 2), "greatest ratio": round(max(ratios), 2),
    }  # fmt: skip


def main() -> None:
    """Compare every recurrent network and write the results."""
    torch.set_num_threads(1)
    rows = [compare(preset) for preset in LOOPS]
    where = (
        f"{datetime.date.today().isoformat()}, {processor_name()}, one core, torch {torch.__version__}, Python "
        f"{platform.python_version()}, load average {os.getloadavg()[0]:.1f}"
    )
    record = {"conditions": where, "pairs": PAIRS, "tokens": LENGTH, "rounds": ROUNDS, "rows": rows}
    (RESULTS / "recurrent.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    conditions = (
        f"Forward and backward pass of {PAIRS} pairs of {LENGTH} tokens, processor time, median of {ROUNDS} rounds in "
        f"turns, without dropout and output layer. {where}. A ratio above 1: ours is faster."
    )
    lines = [
        "# Recurrent networks beside torch.nn's cells in a plain loop",
        "",
        conditions,
        "",
        "| network | ours, ms | plain loop, ms | ratio | of the rounds |",
        "|---|---|---|---|---|",
        *(
            f"| {row['network']} | {row['milliseconds']} | {row['plain loop']} | {row['ratio']} | "
            f"{row['least ratio']} to {row['greatest ratio']} |"
            for row in rows
        ),
        "",
        "Made by `python benchmarks/recurrent.py`.",
    ]
    (RESULTS / "recurrent.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
