"""Matrix products of int8 rows in instructions of our own choice: AVX-512 VNNI.

What `products.py` asks of oneDNN, made for the shapes of a search: from a handful of rows, where reading the weights is
all the work, to a few hundred. Weights lie in the order in which they are read:

    packed[n / 64, k / 4, n % 64, k % 4] = W_q[n, k]

64 bytes of it, 16 outputs by 4 inputs, meet 4 bytes of a row in one instruction (vpdpbusd), which adds to 16 sums of 32
bits. A tile of 6 rows by 64 outputs keeps its sums in registers and asks for the next tile's weights while it works,
since they come from memory. Rows are bytes around 128, so each output's sum is too large by 128 Σ_k W_q[n, k], which is
known beforehand. Sums of integers are exact, so no order of summing matters and a row is the same in any company.
"""

from copy import copy

import torch
from torch import Tensor

from transduce.engine.machine_code import entry
from transduce.engine.products import FULL, ZERO_POINT, quantize_weight

LANES, GROUP, BLOCKS, ROWS = 16, 4, 4, 6
TILE = LANES * BLOCKS  # outputs of a tile
ROOM = ROWS * TILE


class VnniProduct:
    """One matrix of int8 rows, packed for VNNI; does what `Product` does."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None = None, *, limit: int = FULL, is_embedding: bool = False
    ) -> None:
        quantized, scale = quantize_weight(weight, limit=limit)
        self.outputs, self.inputs = outputs, _ = quantized.shape
        padded, inputs = -(-outputs // TILE) * TILE, -(-self.inputs // GROUP) * GROUP
        full = torch.zeros(padded, inputs, dtype=torch.int8)
        full[:outputs, : self.inputs] = quantized
        packed = full.view(padded // TILE, TILE, inputs // GROUP, GROUP).transpose(1, 2)
        shift = full.sum(dim=1, dtype=torch.int32) * ZERO_POINT
        self._keep(packed.contiguous(), shift, torch.nn.functional.pad(scale, (0, padded - outputs)))
        self.table = (self._packed, self._scale) if is_embedding else None  # the same bytes: nothing is held twice
        self.offset = torch.zeros(outputs) if bias is None else bias.detach().float().clone()

    def _keep(self, packed: Tensor, shift: Tensor, scale: Tensor) -> None:
        self._packed, self._shift, self._scale = packed, shift, scale
        self._weights = (packed.data_ptr(), shift.data_ptr(), scale.data_ptr())

    def among(self, outputs: Tensor) -> "VnniProduct":
        """Return the product with the named rows alone, a multiple of TILE of them."""
        assert len(outputs) % TILE == 0, "a list fills its tiles"
        few = copy(self)
        few.table, few.offset, few.outputs = None, self.offset[outputs], len(outputs)
        groups = self._packed.size(1)
        # Four weights of a row lie side by side: they move as one number. packed[n / 64, k / 4, n % 64]
        words = self._packed.view(torch.int32).view(-1)
        firsts_JT = (outputs // TILE * (groups * TILE) + outputs % TILE).view(-1, TILE)
        places_JGT = firsts_JT[:, None] + (torch.arange(groups) * TILE)[:, None]
        packed = words.take(places_JGT).view(torch.int8).view(-1, groups, TILE, GROUP)
        few._keep(packed, self._shift[outputs], self._scale[outputs])
        return few

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the product, float32, still without the rows' scales and the offset."""
        if self.inputs % GROUP:
            rows = torch.nn.functional.pad(rows, (0, GROUP - self.inputs % GROUP))
        out, room = torch.empty(len(rows), self.outputs), torch.empty(ROOM)
        entry("multiply", 9)(*self.operands(rows, out, room=room))
        return out

    def operands(self, rows: Tensor, out: Tensor, *, room: Tensor) -> tuple[int, ...]:
        """Return what the kernel takes; a last tile that is wider than what is left of the outputs needs the room."""
        operands = (rows.data_ptr(), *self._weights, out.data_ptr(), room.data_ptr())
        return (*operands, rows.size(0), self.outputs, rows.size(1))
