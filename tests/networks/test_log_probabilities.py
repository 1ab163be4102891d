"""log p of a label is log softmax of its logits, however the batch is cut."""

import math
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from transduce.networks import log_probabilities
from transduce.networks.log_probabilities import log_softmax, token_log_probabilities
from transduce.networks.output import Output

B, T, D, V = 3, 7, 5, 11


@pytest.mark.parametrize("at_once", [1, 4, 21, 1024])
def test_it_is_the_plain_log_softmax_however_it_is_cut(at_once: int) -> None:
    hidden_BTD, matrix_VD = (torch.randn(shape).double().requires_grad_() for shape in ((B, T, D), (V, D)))
    label_BT = torch.randint(V, (B, T))
    expected_BT = torch.log_softmax(hidden_BTD @ matrix_VD.T, dim=-1).gather(-1, label_BT[..., None])[..., 0]
    with mock.patch.object(log_probabilities, "TOKENS_AT_ONCE", at_once):
        actual_BT = token_log_probabilities(hidden_BTD, Output(matrix_VD), label_BT)
    assert_close(actual_BT, expected_BT)
    for wanted in (hidden_BTD, matrix_VD):
        assert_close(
            torch.autograd.grad(actual_BT.sin().sum(), wanted, retain_graph=True),
            torch.autograd.grad(expected_BT.sin().sum(), wanted, retain_graph=True),
        )


def test_a_bias_is_added_to_the_logits() -> None:
    hidden_BTD, matrix_VD, bias_V = torch.randn(B, T, D).double(), torch.randn(V, D).double(), torch.randn(V).double()
    label_BT = torch.randint(V, (B, T))
    logits_BTV = torch.nn.functional.linear(hidden_BTD, matrix_VD, bias_V)
    expected_BT = logits_BTV.log_softmax(-1).gather(-1, label_BT[..., None])[..., 0]
    assert_close(token_log_probabilities(hidden_BTD, Output(matrix_VD, bias_V), label_BT), expected_BT)


def test_probabilities_of_all_labels_sum_to_one() -> None:
    hidden_BTD, matrix_VD = torch.randn(B, T, D).double(), torch.randn(V, D).double()
    each = [
        token_log_probabilities(hidden_BTD, Output(matrix_VD), torch.full((B, T), label)).exp() for label in range(V)
    ]
    assert_close(torch.stack(each).sum(dim=0), torch.ones(B, T).double())


def test_by_hand() -> None:
    # Logits [2, 1, 0, -1, 0.5], as the label smoothing of our notes on the paper uses them.
    hidden_BTD, matrix_VD = torch.ones(1, 5, 1), torch.tensor([[2.0], [1.0], [0.0], [-1.0], [0.5]])
    expected = [-0.57443794, -1.57443794, -2.57443794, -3.57443794, -2.07443794]
    assert_close(
        token_log_probabilities(hidden_BTD, Output(matrix_VD), torch.arange(5)[None])[0], torch.tensor(expected)
    )


def test_a_network_that_knows_nothing_gives_every_label_one_in_v() -> None:
    log_p_BT = token_log_probabilities(torch.zeros(1, 1, D), Output(torch.randn(37_000, D)), torch.tensor([[123]]))
    assert log_p_BT.item() == pytest.approx(-10.51867319, abs=1e-5)


def test_the_softmax_is_taken_in_float32() -> None:
    hidden_BTD, matrix_VD = torch.randn(B, T, D).bfloat16(), torch.randn(V, D).bfloat16()
    label_BT = torch.randint(V, (B, T))
    actual_BT = token_log_probabilities(hidden_BTD, Output(matrix_VD), label_BT)
    assert actual_BT.dtype == torch.float32
    logits_BTV = (hidden_BTD @ matrix_VD.T).float()
    assert_close(actual_BT, logits_BTV.log_softmax(-1).gather(-1, label_BT[..., None])[..., 0])


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=9))
def test_log_softmax_is_finite_and_its_exponentials_sum_to_one(row: list[float]) -> None:
    log_p = log_softmax(torch.tensor(row))
    assert bool(log_p.isfinite().all())
    assert math.fsum(log_p.double().exp().tolist()) == pytest.approx(1.0, abs=1e-5)
