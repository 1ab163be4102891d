"""Roles found where they are planted, and links weighed by hand."""

import pytest
import torch
from torch import Tensor

from transduce.inspection.head_roles import best_head, link_weights, rank_heads
from transduce.networks.attention_block import AttentionBlock

END = 3


def test_the_weight_of_a_link_by_hand() -> None:
    weights_LHQK = torch.tensor([[[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]]])
    found = list(link_weights(weights_LHQK, [([0], [1]), ([0, 1], [0, 2]), ([], [1])]))
    assert [row.tolist() for row in found] == [
        [pytest.approx([0.3, 1 / 3])],
        [pytest.approx([(0.7 + 0.8) / 2, 2 / 3])],
    ]


def test_a_head_is_scored_on_what_it_was_not_chosen_on() -> None:
    chosen, tested = torch.tensor([[0.9, 0.1, 0.3]]), torch.tensor([[0.2, 0.6, 0.3]])
    best = best_head([chosen, tested, chosen, tested])
    assert (best.layer, best.head, best.examples) == (0, 0, 4)
    assert best.weight == pytest.approx(0.2)
    assert best.mean_of_others == pytest.approx(0.6)
    assert best.even_share == pytest.approx(0.3)


class Planted:
    """A network whose heads have known jobs; token n + 100 translates token n."""

    training = False

    def attention(self, source: list[int], target: list[int]) -> dict[str, AttentionBlock]:
        return planted(source, target)


def planted(source: list[int], target: list[int]) -> dict[str, AttentionBlock]:

    def heads(*rows: Tensor) -> Tensor:
        return torch.stack([row / row.sum(-1, keepdim=True) for row in rows])[None]

    S, T = len(source), len(target)
    even = torch.ones(S, S)
    before = torch.eye(S).roll(-1, dims=1) + 0.01
    at_end = torch.full((S, S), 0.01)
    at_end[:, -1] = 1.0
    aligned = torch.tensor([[1.0 if one + 100 == other else 0.01 for one in source] for other in target])
    read = torch.eye(T) + 0.01 * torch.ones(T, T).tril()
    return {
        "encoder": AttentionBlock("source", "source", heads(even, before, at_end)),
        "decoder": AttentionBlock("target", "read", heads(torch.ones(T, T).tril(), read)),
        "cross": AttentionBlock("target", "source", heads(torch.ones(T, S), aligned)),
    }


def test_planted_heads_are_found() -> None:
    draws = torch.Generator().manual_seed(4)
    pairs = []
    for _ in range(60):
        source = torch.randint(10, 30, (6,), generator=draws).tolist()
        pairs.append(([*source, END], [*(token + 100 for token in source), END]))
    found = {(one.block, one.role): one for one in rank_heads(Planted(), pairs, delimiters={END})}  # type: ignore[arg-type]
    # `roll(-1)` puts the 1 of row i into column i - 1.
    expected = {
        ("encoder", "the token before"): 1,
        ("encoder", "punctuation and the end"): 2,
        ("decoder", "the token just read"): 1,
        ("cross", "the token that goes with it"): 1,
    }
    assert {role: found[role].head for role in expected} == expected
    assert all(found[role].weight > 2 * found[role].even_share for role in expected)
    assert found["encoder", "the rarest token"].examples == 60
