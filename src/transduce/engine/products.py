"""Matrix products of int8 rows, through oneDNN's kernel in torch.

    y = (q - 128) W_q^T * w,   q in 0 … 255 for each row's own scale, W_q in -127 … 127, w one scale for each output

torch's kernel takes one scale for a whole batch of rows; a neighbour would change a translation. Here it is told 1, and
the row's own scale is applied to what comes out. The sums are of integers, so they are exact and a row's result is
the same, bit for bit, whatever stands beside it.

`torch.ops.onednn` is private to torch: `weight_limit` tries it, and says what it can be trusted with.
"""

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any

import torch
from torch import Tensor

ZERO_POINT = 128
FULL, NARROW = 127, 63  # the largest weight; narrow, a sum of two products fits into 16 bits
_TRIED = 64  # inputs and outputs of the product that is tried


class Product:
    """One matrix of int8 rows, packed for the processor, with what its outputs are multiplied by and added to."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, limit: int, is_embedding: bool = False) -> None:
        quantized, scale = quantize_weight(weight, limit=limit)
        self.table = (quantized, scale) if is_embedding else None
        self.offset = torch.zeros(weight.size(0)) if bias is None else bias.detach().float().clone()
        self._pack(quantized, scale)

    def _pack(self, quantized: Tensor, scale: Tensor) -> None:
        self._weight = torch.ops.onednn.qlinear_prepack(quantized, None)
        self._scale = scale
        self._zeros = torch.zeros(len(scale), dtype=torch.int32)

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the product, float32, still without the rows' scales and the offset."""
        product: Tensor = torch.ops.onednn.qlinear_pointwise.default(
            rows,
            1.0,
            ZERO_POINT,
            self._weight,
            self._scale,
            self._zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            _NOTHING,
            "",
        )
        return product

    def among(self, outputs: Tensor) -> "Product":
        """Return the product with the named rows alone; only an embedding keeps them."""
        assert self.table is not None, "it was packed as an embedding"
        quantized, scale = self.table
        few = copy(self)
        few.table, few.offset = None, self.offset[outputs]
        few._pack(quantized[outputs].contiguous(), scale[outputs])
        return few


_NOTHING: Sequence[Any] = []


def quantize_weight(weight: Tensor, *, limit: int) -> tuple[Tensor, Tensor]:
    """Return int8 rows and a float32 scale for each, so that the largest weight of a row is `limit` * scale."""
    exact = weight.detach().float()
    scale = (exact.abs().amax(dim=1) / limit).clamp_min(1e-30)
    return (exact / scale[:, None]).round_().to(torch.int8).contiguous(), scale


@cache
def weight_limit() -> int | None:
    """Return the largest weight with which int8 products are exact here, or None if torch has none.

    Processors without VNNI add two products in 16 bits, which saturate at full weights: there 7 bits must do.
    """
    for limit in (FULL, NARROW):
        if _is_exact(limit):
            return limit
    return None


def _is_exact(limit: int) -> bool:
    weight = torch.full((_TRIED, _TRIED), float(limit))
    weight[1::2] *= -1.0
    rows = torch.full((3, _TRIED), 255, dtype=torch.uint8)
    rows[1], rows[2] = 0, ZERO_POINT
    try:
        found = Product(weight, limit=limit)(rows)
    except (AttributeError, RuntimeError):
        return False
    return bool(torch.equal(found, (rows.float() - ZERO_POINT) @ weight.T))
