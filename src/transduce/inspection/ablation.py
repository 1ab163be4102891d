"""Ablation: what a network would predict without one head, for every head and a finished translation.

    MultiHead(Q, K, V) = Concat(head_1, …, 0, …, head_h) W^O

The other heads keep their weights, and the tokens before each position stay as they are, so a difference is the work of
that head in this place. Heads that do the same work hide each other: without either, nothing may change.
"""

from dataclasses import replace

import torch
from torch import Tensor

from transduce.inspection.contract import CandidateEntry, RemovedHeadEntry
from transduce.inspection.report import AttentionReport, most_probable
from transduce.networks.attention_sublayer import sublayers_by_kind, without_head
from transduce.networks.log_probabilities import log_softmax
from transduce.networks.network import Network
from transduce.text.tokenizer import Tokenizer

CANDIDATES, DIGITS = 5, 5


@torch.no_grad()
def with_ablation(report: AttentionReport, network: Network, tokenizer: Tokenizer) -> AttentionReport:
    """Return the report with what the float32 `network` predicts without each head that can be removed.

    `tokenizer` is that of the targets. A network whose attention has no heads to remove gives none.
    """
    source, target = torch.tensor([report.source.ids]), torch.tensor([report.target.ids])
    named = [*report.source.tokens, *report.target.tokens]

    def entry() -> RemovedHeadEntry:
        log_TV = log_softmax(network.output.logits(network(source, target)[0]))
        chosen_T: Tensor = log_TV.gather(-1, target.T)[:, 0]
        best = most_probable(log_TV, tokenizer, named=named, count=CANDIDATES)
        rounded = [
            [CandidateEntry(id=one.id, text=one.text, probability=round(one.probability, DIGITS)) for one in row]
            for row in best
        ]
        return RemovedHeadEntry(log_probabilities=[round(x, DIGITS) for x in chosen_T.tolist()], candidates=rounded)

    found: dict[str, list[list[RemovedHeadEntry]]] = {}
    for kind, sublayers in sublayers_by_kind(network).items():
        for sublayer in sublayers:
            heads = []
            for head in range(sublayer.heads):
                with without_head(sublayer, head):
                    heads.append(entry())
            found.setdefault(kind, []).append(heads)
    return replace(report, without=found or None)
