"""Products of int8 rows: exact sums, each row by itself, whatever the batch and its neighbours."""

import pytest
import torch

from transduce.engine.backend import Backend, fused_backend, torch_backend
from transduce.engine.products import FULL, NARROW, ZERO_POINT, Product, quantize_weight, weight_limit

BACKENDS = [backend for backend in (torch_backend(), fused_backend()) if backend is not None]
pytestmark = pytest.mark.skipif(weight_limit() is None, reason="torch has no exact int8 product on this processor")


def quantized(x_RD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale_R = x_RD.abs().amax(dim=1) / 127.0
    return (x_RD / scale_R[:, None] + ZERO_POINT + 0.5).to(torch.uint8), scale_R


@pytest.mark.parametrize("limit", [NARROW, FULL])
def test_a_product_is_the_exact_sum_of_integers_times_the_outputs_scale(limit: int) -> None:
    if limit > (weight_limit() or 0):
        pytest.skip("full weights saturate on this processor")
    torch.manual_seed(1)
    weight, rows = torch.randn(37, 53), torch.randint(0, 256, (7, 53), dtype=torch.uint8)
    integers, scale = quantize_weight(weight, limit=limit)
    assert int(integers.abs().max()) == limit
    sums = (rows.long() - ZERO_POINT) @ integers.long().T
    torch.testing.assert_close(Product(weight, limit=limit)(rows), sums.float() * scale, rtol=1e-6, atol=0)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_rows_are_equal_bit_for_bit_at_any_batch_size_and_beside_any_neighbour(backend: Backend) -> None:
    torch.manual_seed(2)
    product = backend.product(torch.randn(96, 64), limit=backend.limit)
    rows, _ = quantized(torch.randn(128, 64))
    together = product(rows)
    for count in (1, 2, 3, 4, 32, 127):
        assert torch.equal(product(rows[:count].contiguous()), together[:count])
    loud, scale = quantized(torch.cat([torch.randn(1, 64) * 800.0, torch.randn(3, 64)]))
    assert scale[0] > 100 * scale[1]  # the neighbour's own scale, not theirs
    assert torch.equal(product(loud)[1:], product(loud[1:].contiguous()))


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 128), (50, 97)])
def test_a_product_with_some_rows_is_those_of_the_whole_bit_for_bit(
    backend: Backend, inputs: int, outputs: int
) -> None:
    torch.manual_seed(5)
    product = backend.product(torch.randn(outputs, inputs), limit=backend.limit, is_embedding=True)
    rows, named = torch.randint(0, 256, (5, inputs), dtype=torch.uint8), torch.randint(0, outputs, (192,))
    assert torch.equal(product.among(named)(rows), product(rows)[:, named])


def test_the_error_is_that_of_eight_bits() -> None:
    torch.manual_seed(3)
    weight, x_RD = torch.randn(64, 512), torch.randn(16, 512)
    rows, scale_R = quantized(x_RD)
    found = Product(weight, limit=weight_limit() or NARROW)(rows) * scale_R[:, None]
    exact = x_RD @ weight.T
    assert float((found - exact).norm() / exact.norm()) < 0.03


def test_a_row_of_zeros_in_the_weights_gives_zeros() -> None:
    weight = torch.zeros(3, 8)
    weight[1] = 1.0
    found = Product(weight, limit=NARROW)(torch.full((2, 8), 255, dtype=torch.uint8))
    assert found[:, 0].abs().max() < 1e-20
    assert float(found[0, 1]) == pytest.approx(8 * 127)


@pytest.mark.parametrize(("inputs", "outputs"), [(4, 1), (64, 64), (53, 37), (128, 130), (20, 193)])
def test_our_own_product_equals_that_of_torch_bit_for_bit(inputs: int, outputs: int) -> None:
    if len(BACKENDS) < 2 or weight_limit() != FULL:
        pytest.skip("there is no numba here, or no AVX-512 VNNI")
    torch.manual_seed(4)
    weight = torch.randn(outputs, inputs)
    torchs, ours = (backend.product(weight, limit=FULL) for backend in BACKENDS)
    for count in (1, 2, 3, 4, 5, 6, 7, 12, 13, 29):
        rows = torch.randint(0, 256, (count, inputs), dtype=torch.uint8)
        assert torch.equal(torchs(rows), ours(rows))
