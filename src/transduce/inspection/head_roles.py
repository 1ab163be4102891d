"""Heads ranked by role: the mean weight that each gives from tokens to tokens related to them, over a corpus.

A role is a relation: the token before, punctuation, the rarest token, the token of the other side that goes with it.
The best head is chosen on every second example, and its score on the others is reported, beside the even share: what
a head gives that attends to all keys alike.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.inspection.recording import attention_of
from transduce.networks.network import Network

Link = tuple[Sequence[int], Sequence[int]]
"""Places of queries, and places of the keys that they are related to."""
Ids = Sequence[int]
SURE, OFTEN = 0.5, 2
"""Two tokens go together if 2 · both / (one + other) is at least SURE, of sentences, and both are in OFTEN of them."""


@dataclass(frozen=True)
class RankedHead:
    """The best head for a role, scored on the examples that it was not chosen on."""

    block: str
    role: str
    layer: int
    """Counted from 0."""
    head: int
    """Counted from 0."""
    weight: float
    even_share: float
    mean_of_others: float
    examples: int
    best_example: int
    """The number of the sentence, counted from 0, in which this head gives the relation most weight."""


def link_weights(weights_LHQK: Tensor, links: Iterable[Link]) -> Iterator[Tensor]:
    """Yield for each link the weight that each head gives it, shape (L, H + 1); the last column is the even share."""
    even_L1 = weights_LHQK.new_ones(len(weights_LHQK), 1) / weights_LHQK.size(-1)
    for queries, keys in links:
        if queries and keys:
            weights_LH = weights_LHQK[:, :, list(queries)][..., list(keys)].sum(-1).mean(-1)
            yield torch.cat([weights_LH, even_L1 * len(keys)], dim=1)


def best_head(found: Sequence[Tensor], *, block: str = "encoder", role: str = "") -> RankedHead:
    """Return the head with the most weight on every second of what `link_weights` gave, scored on the others."""
    chosen_on_LH, tested_on_LH = torch.stack(list(found[::2])).mean(0), torch.stack(list(found[1::2])).mean(0)
    best = int(chosen_on_LH[:, :-1].argmax())
    layer, head = divmod(best, chosen_on_LH.size(1) - 1)
    others = tested_on_LH[:, :-1].flatten().tolist()
    weight = others.pop(best)
    example = max(range(len(found)), key=lambda number: float(found[number][layer, head]))
    mean = sum(others) / max(len(others), 1)
    return RankedHead(block, role, layer, head, weight, float(tested_on_LH[0, -1]), mean, len(found), example)


def rank_heads(network: Network, pairs: Sequence[tuple[Ids, Ids]], *, delimiters: set[int]) -> list[RankedHead]:
    """Return the best head of each role that at least two pairs have; `delimiters` are punctuation and end tokens."""
    partners, counts = _partners(pairs, delimiters), Counter(token for source, _ in pairs for token in source)
    found: dict[tuple[str, str], list[tuple[int, Tensor]]] = {}
    for number, (source, target) in enumerate(pairs):
        blocks = attention_of(network, source, target)
        for (block, role), links in _links(source, target, delimiters, counts, partners).items():
            if block in blocks and (weights := list(link_weights(blocks[block].weights_LHQK, links))):
                found.setdefault((block, role), []).append((number, torch.stack(weights).mean(0)))
    ranked = []
    for (block, role), examples in found.items():
        if len(examples) > 1:
            best = best_head([weights for _, weights in examples], block=block, role=role)
            ranked.append(RankedHead(**{**vars(best), "best_example": examples[best.best_example][0]}))
    return ranked


def _links(
    source: Ids, target: Ids, delimiters: set[int], counts: Mapping[int, int], partners: Mapping[int, int]
) -> dict[tuple[str, str], list[Link]]:
    """Return the links of each block and role in one pair."""
    S, T = range(len(source)), range(len(target))
    marks = [place for place in S if source[place] in delimiters]
    words = [place for place in S if place not in marks]
    rarest = min(words, key=lambda place: counts[source[place]], default=None)
    rare = [] if rarest is None else [rarest]
    # The decoder's keys are what was read: key t is the token before the one that query t predicts.
    read_marks = [place for place in T if not place or target[place - 1] in delimiters]
    written = [place for place in T if target[place] not in delimiters]
    together: list[Link] = [
        ([place], [other for other in words if source[other] == partners.get(target[place])]) for place in written
    ]
    return {
        ("encoder", "the token before"): [([place], [place - 1]) for place in S if place],
        ("encoder", "the token after"): [([place], [place + 1]) for place in S[:-1]],
        ("encoder", "punctuation and the end"): [(words, marks)],
        ("encoder", "the rarest token"): [([place for place in S if place not in rare], rare)],
        ("decoder", "the token just read"): [([place], [place]) for place in T],
        ("decoder", "the token before that"): [([place], [place - 1]) for place in T if place],
        ("decoder", "the start and punctuation"): [([place], [k for k in read_marks if k <= place]) for place in T],
        ("cross", "the token that goes with it"): together,
        ("cross", "punctuation and the end"): [(written, marks)],
        ("cross", "the rarest token"): [(written, rare)],
    }


def _partners(pairs: Sequence[tuple[Ids, Ids]], delimiters: set[int]) -> dict[int, int]:
    """Return the source token that goes with each target token, where one surely does."""
    sources, targets, both = Counter[int](), Counter[int](), Counter[tuple[int, int]]()
    for source, target in pairs:
        ours, theirs = set(source) - delimiters, set(target) - delimiters
        sources.update(ours)
        targets.update(theirs)
        both.update((one, other) for one in ours for other in theirs)
    best: dict[int, tuple[float, int]] = {}
    for (one, other), count in both.items():
        sureness = 2 * count / (sources[one] + targets[other])
        if count >= OFTEN and sureness >= SURE:
            best[other] = max(best.get(other, (0.0, one)), (sureness, one))
    return {other: one for other, (_, one) in best.items()}
