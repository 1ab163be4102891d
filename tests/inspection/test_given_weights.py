"""Anybody's tensors become a report, in every form in which people have them; what does not fit is refused."""

import numpy as np
import pytest
import torch

import transduce
from transduce.errors import DataError

TOKENS = ["the", "dog", "##s", "run"]


def test_every_usual_form_gives_the_same_weights() -> None:
    weights_LHQK = torch.rand(3, 2, 4, 4).softmax(dim=-1)
    forms = (
        weights_LHQK,
        weights_LHQK.numpy(),
        tuple(layer[None] for layer in weights_LHQK),  # Hugging Face: a batch of one for each layer
        [layer.numpy() for layer in weights_LHQK],
    )
    for form in forms:
        report = transduce.show_attention(TOKENS, form)
        assert torch.equal(report.blocks["attention"].weights_LHQK, weights_LHQK)
        assert [token.text for token in report.source.tokens] == TOKENS
        assert report.to_entry().blocks["attention"].shape == (3, 2, 4, 4)
    one = transduce.show_attention(TOKENS, weights_LHQK[0, 0].requires_grad_())
    assert one.blocks["attention"].weights_LHQK.shape == (1, 1, 4, 4)


def test_other_tokens_may_be_the_keys() -> None:
    report = transduce.show_attention(TOKENS, np.full((1, 2, 4, 3), 1 / 3), keys=["a", "b", "c"])
    assert report.source.text == "a b c"
    assert report.target.text == "the dog ##s run"
    assert [report.source.text[token.start : token.end] for token in report.source.tokens] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        (torch.rand(2, 4, 5), r"shape \(1, 2, 4, 5\), and 4 queries and 4 keys need \(layers, heads, 4, 4\)"),
        (torch.full((4, 4), 0.5), "not attention weights"),
        (torch.full((4, 4), -0.1), "not attention weights"),
        (torch.full((4, 4), torch.nan), "not attention weights"),
        ([], "the list of layers is empty"),
    ],
)
def test_what_does_not_fit_is_refused(weights: object, fault: str) -> None:
    with pytest.raises(DataError, match=fault):
        transduce.show_attention(TOKENS, weights)
