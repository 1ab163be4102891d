"""Our own functions break no law of the lessons, and each law can be broken."""

import math
from functools import partial

import torch
from torch import Tensor

from transduce.learning.laws import (
    broken_by_attention,
    broken_by_bleu,
    broken_by_causality,
    broken_by_costs,
    broken_by_heads,
    broken_by_prediction,
    broken_by_schedule,
    broken_by_softmax,
)
from transduce.model import ModelConfig, Transformer
from transduce.model.attention import attend, softmax
from transduce.training.optimization import paper_rate


def plain_attend(query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None) -> Tensor:
    return attend(query, key, value, visible_BHQK=visible)


def test_our_functions_keep_every_law() -> None:
    assert broken_by_softmax(softmax) == []
    assert broken_by_attention(plain_attend) == []
    assert broken_by_schedule(partial(paper_rate, d_model=512, warmup_steps=4000)) == []
    torch.manual_seed(1)
    network = Transformer(ModelConfig(vocabulary_size=20, d_model=8, heads=2, d_ff=8, layers=2)).eval()
    assert broken_by_causality(network, 20) == []


def test_each_law_of_the_softmax_can_be_broken() -> None:
    broken = {
        "weights are positive": lambda x: x / x.sum(-1, keepdim=True),
        "a row adds up to 1": lambda x: softmax(x) * 2,
        "a constant added to a row changes nothing": lambda x: softmax(x * x.amax(-1, keepdim=True)),
        "a larger score has a larger weight": lambda x: softmax(-x),
        "large scores do not overflow": lambda x: x.exp() / x.exp().sum(-1, keepdim=True),
        "a hidden entry has weight 0": lambda x: softmax(x.clamp(min=-1)),
    }
    for law, function in broken.items():
        assert law in broken_by_softmax(function)


def test_each_law_of_attention_can_be_broken() -> None:
    broken = {
        "there is one output for each query, as wide as a value": lambda q, k, v, m: plain_attend(q, k, v, m)[:, :2],
        "an output is a mean of values: weights add up to 1": lambda q, k, v, m: 2 * plain_attend(q, k, v, m),
        "the order of the keys does not matter": lambda q, k, v, m: plain_attend(
            q, k + torch.arange(len(k))[:, None], v, m
        ),
        "a hidden key changes nothing": lambda q, k, v, m: plain_attend(q, k, v, None),
        "wide keys do not saturate the softmax": lambda q, k, v, m: plain_attend(q * math.sqrt(q.shape[-1]), k, v, m),
        "it equals torch's": lambda q, k, v, m: plain_attend(q * 0.9, k, v, m),
    }
    for law, function in broken.items():
        assert law in broken_by_attention(function)


def test_each_law_of_the_schedule_can_be_broken() -> None:
    def rate(step: int) -> float:
        return paper_rate(step, d_model=512, warmup_steps=4000)

    broken = {
        "the first steps are small": lambda step: 512**-0.5 * step**-0.5,
        "it rises in a straight line": lambda step: rate(step) ** 2,
        "it is highest at the end of the warm-up": lambda step: 512**-0.5 * step * 4000**-1.5,
        "four times the steps, half the rate": lambda step: min(rate(step), rate(4000)) if step < 4000 else rate(4000),
        "the peak is that of the paper": lambda step: 2 * rate(step),
    }
    for law, function in broken.items():
        assert law in broken_by_schedule(function)


def test_each_law_of_causality_can_be_broken() -> None:
    def summed(source: Tensor, labels: Tensor) -> Tensor:
        return (labels.sum(1, keepdim=True) + source.sum(1, keepdim=True) + 0 * labels)[..., None].float()

    def blind(source: Tensor, labels: Tensor) -> Tensor:
        return torch.zeros(*labels.shape, 1)

    def counting(source: Tensor, labels: Tensor) -> Tensor:
        return torch.full((*labels.shape, 1), float(source.shape[1])) + source[:, :1, None]

    assert broken_by_causality(summed, 20) == ["a prediction does not see its answer or what follows"]
    assert broken_by_causality(blind, 20) == ["every prediction sees the whole source"]
    assert broken_by_causality(counting, 20) == ["padding of the source changes nothing"]


def test_each_law_of_heads_can_be_broken() -> None:
    def heads(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, h: int) -> Tensor:
        query, key, value = ((x @ W).unflatten(-1, (h, -1)).transpose(0, 1) for W in (W_Q, W_K, W_V))
        return attend(query, key, value).transpose(0, 1).flatten(start_dim=1) @ W_O

    torchs = "it equals torch's"
    unread = "a head that W^O does not read changes nothing"
    assert broken_by_heads(heads) == []
    assert broken_by_heads(lambda x, q, k, v, o, h: heads(x, q, k, v, o, 1)) == [unread, torchs]
    assert broken_by_heads(lambda x, q, k, v, o, h: heads(x, q / 2, k, v, o, h)) == [torchs]
    assert broken_by_heads(lambda x, q, k, v, o, h: heads(x, q, k, v, torch.eye(12), h)) == [unread, torchs]
    placed = broken_by_heads(lambda x, q, k, v, o, h: heads(x + torch.arange(5)[:, None], q, k, v, o, h))
    assert placed == ["the order of the positions does not matter", torchs]
    narrow = broken_by_heads(lambda x, q, k, v, o, h: heads(x, q, k, v, o, h)[:, :4])
    assert "there is one output for each position, as wide as an input" in narrow


def test_each_law_of_prediction_can_be_broken() -> None:
    weight_VV = torch.randn(7, 7, generator=torch.Generator().manual_seed(1))
    place_T = torch.arange(1, 6)[:, None]
    seen = [
        "a prediction does not see what follows",
        "every earlier token counts",
        "the order of earlier tokens counts",
    ]
    assert broken_by_prediction(lambda read: (weight_VV[read] * place_T).cumsum(1), 7, 5) == []
    assert (
        broken_by_prediction(lambda read: (weight_VV[read] * place_T).sum(1, keepdim=True) + 0 * weight_VV[read], 7, 5)
        == seen[:1]
    )
    assert broken_by_prediction(lambda read: weight_VV[read].cumsum(1), 7, 5) == seen[2:]
    assert broken_by_prediction(lambda read: weight_VV[read], 7, 5) == seen[1:]


def test_each_law_of_costs_can_be_broken() -> None:
    def table_1(n: int, d: int, k: int, r: int) -> dict[str, float]:
        return {
            "self-attention": n * n * d,
            "recurrent": n * d * d,
            "convolution": k * n * d * d,
            "restricted": r * n * d,
        }

    def laws_without(**changed: float) -> int:
        return len(broken_by_costs(lambda n, d, k, r: {**table_1(n, d, k, r), **changed}))

    assert broken_by_costs(table_1) == []
    assert laws_without(**{"self-attention": 1.0}) == 3
    assert laws_without(recurrent=1.0) == 4
    assert laws_without(convolution=1.0) == laws_without(restricted=1.0) == 1


def test_laws_of_bleu_can_be_broken() -> None:
    assert len(broken_by_bleu(lambda outputs, references: 90.5 + len(outputs[0]) / 10)) == 5
