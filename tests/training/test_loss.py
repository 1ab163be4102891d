import math
import subprocess
import sys
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from transduce.networks.output import Output
from transduce.training import chunked_loss
from transduce.training.chunked_loss import LogitsBuffer
from transduce.training.loss import Loss, token_loss, token_loss_and_gradient
from transduce.training.smoothing import Smoothing

Convention = Literal["szegedy", "authors"]
CONVENTIONS: tuple[Convention, ...] = ("szegedy", "authors")
LOGITS = [2.0, 1.0, 0.0, -1.0, 0.5]


def loss_of_logits(logits: list[list[float]], labels: list[int], smoothing: Smoothing) -> Loss:
    """Return the loss of given logits: with an identity matrix for E, hidden states are logits."""
    hidden_BTD = torch.tensor([logits], dtype=torch.float64)
    return token_loss(
        hidden_BTD,
        Output(torch.eye(len(logits[0]), dtype=torch.float64)),
        torch.tensor([labels]),
        smoothing=smoothing,
    )


def plain_loss(hidden_BTD: Tensor, output: Output, target_BT: Tensor, *, smoothing: Smoothing) -> Tensor:
    """Return the loss as the equation has it, holding all logits: the oracle."""
    is_token_N = target_BT.flatten() != 0
    target_distribution_NV = hidden_BTD.new_full((int(is_token_N.sum()), len(output.matrix_VD)), smoothing.other)
    target_distribution_NV.scatter_(1, target_BT.flatten()[is_token_N][:, None], smoothing.true)
    return -(target_distribution_NV * torch.log_softmax(output.logits(hidden_BTD).flatten(0, 1), -1)[is_token_N]).sum()


def test_smoothing_as_the_authors_code_has_it() -> None:
    smoothing = Smoothing.of(0.1, vocabulary_size=5, convention="authors")
    assert (smoothing.true, smoothing.other) == pytest.approx((0.9, 0.025))
    # Label 0 would be padding, so the logits are rolled by one: token 1 is true.
    loss = loss_of_logits([[0.5, *LOGITS[:4]]], [1], smoothing)
    assert loss.objective.item() == pytest.approx(0.76193794, abs=1e-8)
    assert loss.nll.item() == pytest.approx(0.57443794, abs=1e-8)
    assert smoothing.entropy(5) == pytest.approx(0.46371241, abs=1e-8)
    assert loss.objective.item() - smoothing.entropy(5) == pytest.approx(0.29822553, abs=1e-8)


def test_smoothing_as_szegedy_has_it() -> None:
    smoothing = Smoothing.of(0.1, vocabulary_size=5, convention="szegedy")
    assert (smoothing.true, smoothing.other) == pytest.approx((0.92, 0.02))
    loss = loss_of_logits([[0.5, *LOGITS[:4]]], [1], smoothing)
    assert loss.objective.item() == pytest.approx(0.72443794, abs=1e-8)
    assert smoothing.entropy(5) == pytest.approx(0.38967292, abs=1e-8)
    assert loss.objective.item() - smoothing.entropy(5) == pytest.approx(0.33476502, abs=1e-8)


@pytest.mark.parametrize(
    ("vocabulary_size", "expected"), [(37_000, 1.37694759), (40_960, 1.38711566), (32_768, 1.36480069)]
)
def test_the_authors_constant(vocabulary_size: int, expected: float) -> None:
    smoothing = Smoothing.of(0.1, vocabulary_size=vocabulary_size, convention="authors")
    assert smoothing.entropy(vocabulary_size) == pytest.approx(expected, abs=1e-8)


def test_a_batch_by_hand_leaves_padding_out() -> None:
    smoothing = Smoothing.of(0.1, vocabulary_size=5, convention="authors")
    loss = loss_of_logits([LOGITS, [0.0, 3.0, 0.0, 0.0, 0.0], [1.0] * 5], [1, 2, 0], smoothing)
    assert loss.tokens == 2
    assert loss.objective.item() == pytest.approx(1.63693794 + 3.10661153, abs=1e-8)
    assert loss.objective.item() / loss.tokens == pytest.approx(2.37177474, abs=1e-8)


@pytest.mark.parametrize("vocabulary_size", [37_000, 40_960, 32_768])
def test_a_model_that_knows_nothing_pays_the_log_of_the_vocabulary(vocabulary_size: int) -> None:
    smoothing = Smoothing.of(0.1, vocabulary_size=vocabulary_size, convention="szegedy")
    hidden_BTD, matrix_VD = torch.zeros(1, 3, 2), torch.randn(vocabulary_size, 2)
    loss = token_loss(hidden_BTD, Output(matrix_VD), torch.tensor([[5, 6, 7]]), smoothing=smoothing)
    assert loss.objective.item() / 3 == pytest.approx(math.log(vocabulary_size), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_either_convention_is_a_distribution(convention: Convention, epsilon: float) -> None:
    smoothing = Smoothing.of(epsilon, vocabulary_size=13, convention=convention)
    assert smoothing.true + 12 * smoothing.other == pytest.approx(1.0)


def test_the_conventions_are_one_family() -> None:
    authors = Smoothing.of(0.1, vocabulary_size=37, convention="authors")
    szegedy = Smoothing.of(0.1 * 37 / 36, vocabulary_size=37, convention="szegedy")
    assert (authors.true, authors.other) == pytest.approx((szegedy.true, szegedy.other))


@given(
    seed=st.integers(0, 1000),
    convention=st.sampled_from(CONVENTIONS),
    epsilon=st.sampled_from([0.0, 0.1, 0.4]),
    has_bias=st.booleans(),
    logits_at_once=st.integers(1, 300),
)
@settings(max_examples=40, deadline=None)
def test_value_and_gradients_equal_the_plain_loss(
    seed: int,
    convention: Convention,
    epsilon: float,
    has_bias: bool,
    logits_at_once: int,
) -> None:
    torch.manual_seed(seed)
    hidden_BTD = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    matrix_VD = torch.randn(11, 7, dtype=torch.float64, requires_grad=True)
    bias_V = torch.randn(11, dtype=torch.float64, requires_grad=True) if has_bias else None
    output = Output(matrix_VD, bias_V)
    target_BT = torch.randint(0, 11, (3, 5))
    smoothing = Smoothing.of(epsilon, vocabulary_size=11, convention=convention)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunked_loss, "LOGITS_AT_ONCE", logits_at_once)
        ours = token_loss(hidden_BTD, output, target_BT, smoothing=smoothing).objective
    plain = plain_loss(hidden_BTD, output, target_BT, smoothing=smoothing)
    torch.testing.assert_close(ours, plain.double(), atol=1e-10, rtol=1e-10)
    inputs = [hidden_BTD, matrix_VD, *([] if bias_V is None else [bias_V])]
    for gradient, expected in zip(
        torch.autograd.grad(3.0 * ours, inputs), torch.autograd.grad(3.0 * plain, inputs), strict=True
    ):
        torch.testing.assert_close(gradient, expected, atol=1e-10, rtol=1e-10)


def test_likelihood_and_correct_labels_are_counted_beside_the_objective() -> None:
    torch.manual_seed(3)
    hidden_BTD, matrix_VD = torch.randn(2, 19, 7), torch.randn(11, 7)
    target_BT = torch.randint(0, 11, (2, 19))
    loss = token_loss(hidden_BTD, Output(matrix_VD), target_BT, smoothing=Smoothing(true=0.9, other=0.01))
    logits_NV, label_N = (hidden_BTD @ matrix_VD.T).flatten(0, 1), target_BT.flatten()
    expected = functional.cross_entropy(logits_NV, label_N, ignore_index=0, reduction="sum")
    torch.testing.assert_close(loss.nll, expected)
    assert loss.correct.item() == ((logits_NV.argmax(-1) == label_N) & (label_N != 0)).sum().item() > 0
    assert loss.tokens == (label_N != 0).sum().item()


def test_extreme_logits_stay_finite() -> None:
    smoothing = Smoothing.of(0.1, vocabulary_size=3, convention="szegedy")
    loss = loss_of_logits([[0.0, 1e4, -1e4], [0.0, 1e4, -1e4]], [1, 2], smoothing)
    assert loss.nll.item() == pytest.approx(2e4)
    assert math.isfinite(loss.objective.item())


def test_bf16_products_stay_near_float32() -> None:
    torch.manual_seed(5)
    hidden_BTD = torch.randn(2, 101, 64, requires_grad=True)
    matrix_VD = (torch.randn(211, 64) / 8).requires_grad_()
    target_BT = torch.randint(0, 211, (2, 101))
    smoothing = Smoothing.of(0.1, vocabulary_size=211, convention="szegedy")
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        loss = token_loss(hidden_BTD, Output(matrix_VD), target_BT, smoothing=smoothing, product_dtype=dtype)
        results.append((loss.objective, *torch.autograd.grad(loss.objective, [hidden_BTD, matrix_VD])))
    assert abs(results[1][0].item() / results[0][0].item() - 1) < 1e-3
    for exact, rounded in zip(results[0][1:], results[1][1:], strict=True):
        assert rounded.dtype == torch.float32
        assert (rounded - exact).norm() < 0.01 * exact.norm()


class LargestTensor(TorchDispatchMode):
    """Notes the largest tensor that any operation makes, views of a known one aside."""

    def __init__(self, known: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known = known.untyped_storage().data_ptr()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.untyped_storage().data_ptr() != self.known:
            self.elements = max(self.elements, result.numel())
        return result


def test_all_logits_never_exist_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_loss, "LOGITS_AT_ONCE", 2000)
    hidden_BTD = torch.randn(1, 331, 5, requires_grad=True)
    matrix_VD = torch.randn(97, 5, requires_grad=True)
    target_BT = torch.randint(1, 97, (1, 331))
    with LargestTensor(matrix_VD) as largest:
        token_loss(
            hidden_BTD, Output(matrix_VD), target_BT, smoothing=Smoothing(true=1.0, other=0.0)
        ).objective.backward()
    assert largest.elements <= max(2000, 331 * 5)
    assert 10 * 2000 < 331 * 97  # so this would have been noticed


def test_without_gradients_none_are_computed() -> None:
    matrix_VD = torch.randn(97, 5, requires_grad=True)
    with torch.no_grad(), LargestTensor(matrix_VD) as largest:
        loss = token_loss(
            torch.randn(1, 3, 5),
            Output(matrix_VD),
            torch.tensor([[1, 2, 3]]),
            smoothing=Smoothing(true=1.0, other=0.0),
        )
    assert not loss.objective.requires_grad
    assert largest.elements < matrix_VD.numel()


MEASURE = """
import resource, torch
from transduce.networks.output import Output
from transduce.training.loss import token_loss
from transduce.training.smoothing import Smoothing
torch.set_num_threads(1)
hidden_BTD = torch.randn(1, 25_000, WIDTH, requires_grad=True)
matrix_VD = torch.nn.Parameter(torch.randn(37_000, WIDTH) / WIDTH**0.5)
target_BT = torch.randint(1, 37_000, (1, 25_000))
warm = torch.randn(64, 64, dtype=torch.bfloat16); warm @ warm
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
smoothing = Smoothing.of(0.1, vocabulary_size=37_000, convention="szegedy")
loss = token_loss(hidden_BTD, Output(matrix_VD), target_BT, smoothing=smoothing, product_dtype=torch.bfloat16)
loss.objective.backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux alone")
@pytest.mark.parametrize(("width", "limit"), [(64, 256), pytest.param(512, 1024, marks=pytest.mark.extended)])
def test_the_paper_s_step_needs_at_most_a_gibibyte_beside_activations(width: int, limit: int) -> None:
    """All logits would take 1,765 MiB in bf16. A narrow model shows as well whether they are there at once."""
    program = MEASURE.replace("WIDTH", str(width))
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    print(f"{float(result.stdout):.0f} MiB")
    assert float(result.stdout) < limit


def test_memory_for_logits_is_kept_and_leaves_no_trace_in_a_loss() -> None:
    generator = torch.Generator().manual_seed(5)
    hidden_ND, matrix_VD = (torch.randn(rows, 16, generator=generator).bfloat16() for rows in (40, 24))
    buffer = LogitsBuffer()
    first_NV = buffer.product(hidden_ND, matrix_VD)
    assert torch.equal(first_NV, hidden_ND @ matrix_VD.T)
    place = first_NV.data_ptr()
    fewer_NV = buffer.product(hidden_ND[:7], matrix_VD)
    assert fewer_NV.data_ptr() == place
    assert torch.equal(fewer_NV, hidden_ND[:7] @ matrix_VD.T)

    label_N = torch.randint(1, 24, (33,), generator=generator)
    smoothing = Smoothing.of(0.1, vocabulary_size=24, convention="szegedy")
    found = []
    for kept in (None, buffer, buffer):
        weight_VD = matrix_VD.float().requires_grad_()
        weight_VD.grad = torch.zeros_like(weight_VD)
        loss, gradient_ND = token_loss_and_gradient(
            hidden_ND.float(),
            Output(weight_VD),
            label_N,
            smoothing=smoothing,
            product_dtype=torch.bfloat16,
            buffer=kept,
        )
        found.append((loss.objective, gradient_ND, weight_VD.grad))
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_packed_tokens_with_a_bias_have_the_same_loss_and_gradients() -> None:
    torch.manual_seed(4)
    hidden_ND, label_N = torch.randn(13, 7), torch.randint(1, 24, (13,))
    matrix_VD, bias_V = (torch.randn(shape, requires_grad=True) for shape in ((24, 7), (24,)))
    output, smoothing = Output(matrix_VD, bias_V), Smoothing.of(0.1, vocabulary_size=24, convention="szegedy")
    derived_BTD = hidden_ND[None].clone().requires_grad_()
    derived = token_loss(derived_BTD, output, label_N[None], smoothing=smoothing)
    expected = torch.autograd.grad(derived.objective, [derived_BTD, matrix_VD, bias_V])
    matrix_VD.grad, bias_V.grad = torch.zeros_like(matrix_VD), torch.zeros_like(bias_V)
    with torch.no_grad():
        loss, gradient_ND = token_loss_and_gradient(hidden_ND, output, label_N, smoothing=smoothing)
    torch.testing.assert_close(loss.objective, derived.objective.detach())
    for found, wanted in zip((gradient_ND[None], matrix_VD.grad, bias_V.grad), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_padding_may_be_any_id() -> None:
    hidden_BTD, output = torch.randn(2, 4, 5), Output(torch.randn(9, 5))
    usual_BT, unusual_BT = torch.tensor([[5, 6, 0, 0], [7, 6, 5, 8]]), torch.tensor([[5, 6, 4, 4], [7, 6, 5, 8]])
    smoothing = Smoothing(true=0.9, other=0.0125)
    usual = token_loss(hidden_BTD, output, usual_BT, smoothing=smoothing)
    unusual = token_loss(hidden_BTD, output, unusual_BT, smoothing=smoothing, padding=4)
    assert (float(usual.objective), usual.tokens) == (float(unusual.objective), unusual.tokens)
    assert usual.tokens == 6
