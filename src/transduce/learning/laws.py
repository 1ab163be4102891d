"""The laws that check the exercises of the lessons: each takes a function of the learner and returns what it breaks.

Our own functions break none (`tests/learning/test_laws.py`). A law is a name and a condition that holds for every
input; it is tried on fixed random ones.
"""

import math
from collections.abc import Callable, Sequence

import torch
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor
from torch.nn import functional

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""From queries, keys, values (each: positions, width) and what is visible (or None) to outputs."""


def broken_by_softmax(softmax: Callable[[Tensor], Tensor]) -> list[str]:
    """Return the laws of a softmax over the last axis that a function breaks."""
    scores = _draws(5, 7) * 4
    found = softmax(scores)
    large = softmax(torch.tensor([[1e4, 1e4 - 1, -1e4]]))
    hidden = softmax(torch.tensor([[1.0, -math.inf, 0.0]]))
    return _broken(
        ("weights are positive", bool((found > 0).all())),
        ("a row adds up to 1", _near(found.sum(dim=-1), torch.ones(5))),
        ("a constant added to a row changes nothing", _near(softmax(scores + 3), found)),
        ("a larger score has a larger weight", torch.equal(found.argsort(dim=-1), scores.argsort(dim=-1))),
        ("large scores do not overflow", _near(large, torch.tensor([[0.731059, 0.268941, 0.0]]))),
        ("a hidden entry has weight 0", _near(hidden, torch.tensor([[0.731059, 0.0, 0.268941]]))),
    )


def broken_by_attention(attend: Attend) -> list[str]:
    """Return the laws of scaled dot-product attention that a function breaks."""
    query, key, value, order = _draws(4, 16), _draws(6, 16), _draws(6, 3), torch.randperm(6)
    found = attend(query, key, value, None)
    visible = torch.ones(6, 6).tril().bool()
    square, changed = _draws(6, 16), value.clone()
    changed[4:] += 1
    before, after = (attend(square, key, each, visible)[:4] for each in (value, changed))
    return _broken(
        ("there is one output for each query, as wide as a value", found.shape == (4, 3)),
        ("an output is a mean of values: weights add up to 1", _near(attend(query, key, torch.ones(6, 3), None), 1.0)),
        ("the order of the keys does not matter", _near(attend(query, key[order], value[order], None), found)),
        ("a hidden key changes nothing", _near(before, after)),
        (
            "wide keys do not saturate the softmax",
            float(attend(_draws(64, 1024), _draws(8, 1024), torch.eye(8), None).max(dim=-1).values.mean()) < 0.7,
        ),
        ("it equals torch's", _near(found, functional.scaled_dot_product_attention(query, key, value))),
    )


def broken_by_schedule(rate: Callable[[int], float], *, d_model: int = 512, warmup: int = 4000) -> list[str]:
    """Return the laws of equation 3, the learning rate by step, that a function breaks."""
    steps = [1, 2, 100, warmup - 1, warmup, warmup + 1, 4 * warmup, 100_000]
    rates = [rate(step) for step in steps]
    return _broken(
        ("the first steps are small", rates[0] * warmup <= rates[4] * 1.0001),
        ("it rises in a straight line", math.isclose(rates[2], 100 * rates[0], rel_tol=1e-6)),
        ("it is highest at the end of the warm-up", max(rates) == rates[4]),
        ("four times the steps, half the rate", math.isclose(rates[6], rates[4] / 2, rel_tol=1e-6)),
        ("the peak is that of the paper", math.isclose(rates[4], (d_model * warmup) ** -0.5, rel_tol=1e-6)),
    )


def broken_by_causality(hidden_of: Callable[[Tensor, Tensor], Tensor], vocabulary_size: int) -> list[str]:
    """Return the laws of a network that predicts labels (B, T) for sources (B, S), padded with 0, that it breaks."""
    source, labels = torch.randint(4, vocabulary_size, (1, 6)), torch.randint(4, vocabulary_size, (1, 5))
    found = hidden_of(source, labels)
    later, other = labels.clone(), source.clone()
    later[0, 3:] = (later[0, 3:] - 4 + 1) % (vocabulary_size - 4) + 4
    other[0, 0] = (other[0, 0] - 4 + 1) % (vocabulary_size - 4) + 4
    padded = functional.pad(source, (0, 3))
    return _broken(
        ("a prediction does not see its answer or what follows", _near(hidden_of(source, later)[:, :4], found[:, :4])),
        ("every prediction sees the whole source", not _near(hidden_of(other, labels)[:, 0], found[:, 0])),
        ("padding of the source changes nothing", _near(hidden_of(padded, labels), found)),
    )


def broken_by_heads(multi_head: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, int], Tensor]) -> list[str]:
    """Return the laws of multi-head self-attention that a function of x, W^Q, W^K, W^V, W^O and h breaks.

    A matrix W is applied as x @ W; head i has the i-th part of its columns (of the rows of W^O).
    """
    x, order = _draws(5, 12), torch.tensor([3, 0, 4, 1, 2])
    queries, keys, values, output = _draws(4, 12, 12).unbind()
    found = multi_head(x, queries, keys, values, output, 3)
    unread, other_keys = output.clone(), keys.clone()
    unread[4:8], other_keys[:, 4:8] = 0.0, _draws(12, 4)
    before, after = (multi_head(x, queries, each, values, unread, 3) for each in (keys, other_keys))
    shuffled = multi_head(x[order], queries, keys, values, output, 3)
    weights, one = torch.cat([queries, keys, values], dim=1).T, x[:, None]
    wanted = functional.multi_head_attention_forward(
        one, one, one, 12, 3, weights, None, None, None, False, 0.0, output.T, None, training=False, need_weights=False
    )[0][:, 0]
    return _broken(
        ("there is one output for each position, as wide as an input", found.shape == (5, 12)),
        ("the order of the positions does not matter", shuffled.shape == x.shape and _near(shuffled, found[order])),
        ("a head that W^O does not read changes nothing", _near(after, before)),
        ("it equals torch's", _near(found, wanted)),
    )


def broken_by_prediction(logits_of: Callable[[Tensor], Tensor], vocabulary_size: int, length: int) -> list[str]:
    """Return the laws of a language model, from tokens (B, length) to logits of each next one, that it breaks."""
    read = (torch.arange(length) % vocabulary_size)[None]
    later, first, swapped = read.clone(), read.clone(), read.clone()
    later[0, -1] = (read[0, -1] + 1) % vocabulary_size
    first[0, 0] = (read[0, 0] + 1) % vocabulary_size
    swapped[0, :2] = read[0, :2].flip(0)
    found = logits_of(read)
    return _broken(
        ("a prediction does not see what follows", _near(logits_of(later)[:, :-1], found[:, :-1])),
        ("every earlier token counts", not _near(logits_of(first)[:, -1], found[:, -1])),
        ("the order of earlier tokens counts", not _near(logits_of(swapped)[:, -1], found[:, -1])),
    )


def broken_by_costs(operations: Callable[[int, int, int, int], dict[str, float]]) -> list[str]:
    """Return the laws of Table 1's operations, a function of n, d, k and r, that a function breaks."""
    found, longer, wider = operations(50, 512, 3, 10), operations(100, 512, 3, 10), operations(50, 1024, 3, 10)
    even = operations(512, 512, 3, 512)
    return _broken(
        ("twice the length: four times the self-attention", longer["self-attention"] == 4 * found["self-attention"]),
        ("twice the length: twice the recurrence", longer["recurrent"] == 2 * found["recurrent"]),
        ("twice the width: four times the recurrence", wider["recurrent"] == 4 * found["recurrent"]),
        ("self-attention costs as much as recurrence at n = d", even["self-attention"] == even["recurrent"]),
        ("a convolution costs k recurrences", found["convolution"] == 3 * found["recurrent"]),
        ("attention to all n neighbours is self-attention", even["restricted"] == even["self-attention"]),
    )


def broken_by_bleu(bleu: Callable[[Sequence[str], Sequence[str]], float]) -> list[str]:
    """Return the laws of corpus BLEU without smoothing, from 0 to 100, on tokens, that a function breaks."""
    references = ["the cat is on the mat today .", "there is a dog in the garden of my aunt .", "it rains ."]
    outputs = ["the cat is on the mat .", "there is a dog in a garden of my aunt .", "it rains a lot ."]
    found = bleu(outputs, references)
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    expected = metric.corpus_score(outputs, [references]).score
    repeated = bleu(["the the the the the the the ."], ["the cat is on the mat today ."])
    return _broken(
        ("the references themselves have 100", math.isclose(bleu(references, references), 100, abs_tol=1e-6)),
        ("the order of the pairs does not matter", math.isclose(bleu(outputs[::-1], references[::-1]), found)),
        ("a word repeated for ever does not count for ever", repeated == 0),
        ("what is left out costs", bleu(["the cat is on the mat"], ["the cat is on the mat today ."]) < 90),
        ("it equals sacrebleu's", math.isclose(found, expected, abs_tol=1e-6)),
    )


def _broken(*laws: tuple[str, bool]) -> list[str]:
    return [name for name, holds in laws if not holds]


def _draws(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _near(found: Tensor, expected: Tensor | float) -> bool:
    wanted = torch.as_tensor(expected, dtype=found.dtype)
    if wanted.dim() and wanted.shape != found.shape:
        return False
    return torch.allclose(found, wanted.expand_as(found), rtol=1e-4, atol=1e-5)
