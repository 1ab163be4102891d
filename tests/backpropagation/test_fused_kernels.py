"""The compiled passes against their equations in float64, and a whole network with them against one without."""

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.backpropagation import HandwrittenNetwork, fused_kernels
from transduce.backpropagation.dropout import KeyedDropout
from transduce.backpropagation.packing import Packing, past_visible, tokens_visible
from transduce.model import ModelConfig, Transformer

HALF_A_STEP = 2.0**-8  # bf16 has 8 bits: rounding moves a number by at most this share of it
ROWS, WIDTH = 37, 53


def random_bf16(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape) * scale).to(torch.bfloat16)


def assert_rounded(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found.double(), expected, rtol=HALF_A_STEP * 1.01, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_logits_become_their_own_gradient(scale: float) -> None:
    logits_RV = random_bf16(ROWS + 3, WIDTH, scale=scale)
    exact_CV = logits_RV[:ROWS].double()
    label_C = torch.randint(0, WIDTH, (ROWS,))
    normalizer_C, label_logit_C, highest_C = fused_kernels.label_gradients(logits_RV, label_C, extra=-0.9)
    expected_CV = exact_CV.softmax(dim=-1)
    expected_CV[torch.arange(ROWS), label_C] -= 0.9
    assert_rounded(logits_RV[:ROWS], expected_CV)
    assert not logits_RV[ROWS:].any()
    torch.testing.assert_close(normalizer_C.double(), exact_CV.logsumexp(dim=-1), rtol=1e-6, atol=1e-6)
    assert torch.equal(label_logit_C.double(), exact_CV[torch.arange(ROWS), label_C])
    assert torch.equal(highest_C.double(), exact_CV.amax(dim=-1))


def test_sums_are_taken_in_float32() -> None:
    matrix_NO = random_bf16(4001, WIDTH)
    total_O = fused_kernels.sum_of_rows(matrix_NO)
    torch.testing.assert_close(total_O.double(), matrix_NO.double().sum(dim=0), rtol=1e-5, atol=1e-3)
    total = torch.randn(ROWS)
    addend, expected = random_bf16(ROWS), total.clone()
    fused_kernels.add_to(total, addend)
    assert torch.equal(total, expected + addend.float())


def test_the_gradient_of_relu_passes_where_it_has_put_out_more_than_0() -> None:
    output_NF, gradient_NF = random_bf16(ROWS, WIDTH).relu(), random_bf16(ROWS, WIDTH)
    output_NF[0, :5] = -0.0
    expected_NF = gradient_NF.masked_fill(output_NF <= 0, 0.0)
    total_F = fused_kernels.relu_gradient(gradient_NF, output_NF)
    assert torch.equal(gradient_NF, expected_NF)
    torch.testing.assert_close(total_F.double(), expected_NF.double().sum(dim=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_sees_what_is_visible_and_nothing_else(is_causal: bool) -> None:
    lengths, heads, scale = torch.tensor([19, 3, 17]), 2, 0.3
    side = Packing(torch.arange(19) < lengths[:, None], heads=heads)
    visibility = (past_visible if is_causal else lambda s, dtype: tokens_visible(s, s, dtype=dtype))(
        side, dtype=torch.float64
    )
    weights = random_bf16(3 * heads, 19, 19, scale=9.0)
    expected = (scale * weights.double() + visibility.hidden).softmax(dim=-1) * visibility.is_query
    fused_kernels.attention_weights(
        weights, keys_of_B=side.length_B, queries_of_B=side.length_B, is_causal=is_causal, scale=scale
    )
    assert_rounded(weights, expected)

    gradient = random_bf16(3 * heads, 19, 19)
    exact_weights, exact_gradient = weights.double(), gradient.double()
    inner = (exact_weights * exact_gradient).sum(dim=-1, keepdim=True)
    fused_kernels.attention_gradient(gradient, weights, scale=scale)
    assert_rounded(gradient, scale * exact_weights * (exact_gradient - inner))


def test_residual_and_norm_have_the_gradient_that_torch_derives_in_float64() -> None:
    x_ND, branch_ND, gradient_ND = (random_bf16(ROWS, WIDTH) for _ in range(3))
    gain_D, bias_D = torch.randn(WIDTH), torch.randn(WIDTH)
    draw = KeyedDropout(3).draw(x_ND, probability=0.3)
    assert draw is not None
    normed_sum = fused_kernels.NormedSum(gain_D, bias_D, epsilon=1e-6)
    threshold, scale = draw.threshold, draw.scale
    y_ND, saved = normed_sum.forward(x_ND, branch_ND, draw)
    mask = KeyedDropout(3).keep(x_ND, probability=0.3)
    assert mask is not None
    sum_ND, kept_ND = saved[0], mask.kept.bool()
    assert_rounded(sum_ND, x_ND.double() + branch_ND.double() * kept_ND * scale)

    exact_ND, gain, bias = (each.double().requires_grad_() for each in (sum_ND, gain_D, bias_D))
    torch.nn.functional.layer_norm(exact_ND, [WIDTH], gain, bias, 1e-6).backward(gradient_ND.double())
    torch.testing.assert_close(
        y_ND.double(),
        torch.nn.functional.layer_norm(exact_ND, [WIDTH], gain, bias, 1e-6).detach(),
        rtol=HALF_A_STEP,
        atol=1e-5,
    )
    to_sum_ND, to_branch_ND, to_norm_2D = normed_sum.backward(gradient_ND, saved, threshold=threshold, scale=scale)
    assert exact_ND.grad is not None and gain.grad is not None and bias.grad is not None  # noqa: PT018
    torch.testing.assert_close(to_sum_ND.double(), exact_ND.grad, rtol=HALF_A_STEP, atol=1e-5)
    assert_rounded(to_branch_ND, to_sum_ND.double() * kept_ND * scale)
    torch.testing.assert_close(to_norm_2D.double(), torch.stack([gain.grad, bias.grad]), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_network_with_them_is_as_near_to_float32_as_one_without(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers are dropped; what is left is rounding, which differs from seed to seed more than by kernels."""
    with_them, without = [], []
    for seed in range(8):
        with monkeypatch.context() as patch:
            exact, compiled = gradient(norm, seed, torch.float32), gradient(norm, seed, torch.bfloat16)
            patch.setattr(fused_kernels, "has_kernels", lambda dtype: False)
            plain = gradient(norm, seed, torch.bfloat16)
        assert not torch.equal(compiled, plain)  # both ways have been gone
        with_them.append(float((compiled - exact).norm() / exact.norm()))
        without.append(float((plain - exact).norm() / exact.norm()))
    assert np.mean(with_them) < 1.25 * np.mean(without) < 0.1


def gradient(norm: str, seed: int, dtype: torch.dtype) -> Tensor:
    torch.manual_seed(seed)
    sizes = {"vocabulary_size": 31, "layers": 2, "d_model": 32, "d_ff": 48, "heads": 4, "dropout": 0.2, "norm": norm}
    model = Transformer(ModelConfig.model_validate(sizes))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    tokens = torch.randint(4, 31, (5, 23)).masked_fill(torch.arange(23) >= torch.tensor([23, 5, 1, 17, 9])[:, None], 0)
    network = HandwrittenNetwork(model, dtype=dtype)
    network.refresh()
    run = network.forward(tokens, tokens, dropout=KeyedDropout(7))
    run.backward(torch.randn(55, 32))
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])
