"""Matrix products of int8 rows in instructions of our own choice: AVX-512 VNNI, through numba.

What `products.py` asks of oneDNN, made for the shapes of a search: from a handful of rows, where reading the weights is
all the work, to a few hundred. Weights lie in the order in which they are read:

    packed[n / 16, k / 4, n % 16, k % 4] = W_q[n, k]

64 bytes of it, 16 outputs by 4 inputs, meet 4 bytes of a row in one instruction (vpdpbusd), which adds to 16 sums of 32
bits. A tile of 6 rows by 64 outputs keeps its sums in registers. Rows are bytes around 128, so each output's sum is too
large by 128 Σ_k W_q[n, k], which is known beforehand. Sums of integers are exact, so no order of summing matters and a
row is the same in any company.
"""

from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor

from transduce.engine.products import FULL, ZERO_POINT, quantize_weight

LANES, GROUP, BLOCKS, ROWS = 16, 4, 4, 6
TILE = LANES * BLOCKS  # outputs of a tile
_INSTRUCTION = "llvm.x86.avx512.vpdpbusd.512"


def _tile(rows: int) -> Any:
    """Return a function that writes `rows` rows by 64 outputs of the product to `out`."""

    @intrinsic
    def tile(typing_context, inputs, place, weights, sizes, shift, scale, out):
        def generate(context, builder, signature, arguments):
            _build_tile(context, builder, signature, arguments, rows=rows)
            return context.get_dummy_value()

        places, extents = types.UniTuple(types.int64, 4), types.UniTuple(types.int64, 4)
        return types.none(inputs, places, weights, extents, shift, scale, out), generate

    return tile


def _build_tile(context, builder, signature, arguments, *, rows):
    """Write the loop over groups of 4 inputs: weights of 4 blocks, then each row's 4 bytes against all of them."""
    byte, word, long = ir.IntType(8), ir.IntType(32), ir.IntType(64)
    vector = ir.VectorType(word, LANES)
    bytes_vector = ir.VectorType(byte, 4 * LANES)

    def data(place):
        return context.make_array(signature.args[place])(context, builder, arguments[place]).data

    start, first_weight, first_output, first_out = (builder.extract_value(arguments[1], n) for n in range(4))
    stride, block, groups, out_stride = (builder.extract_value(arguments[3], n) for n in range(4))
    row_pointers = [
        builder.gep(data(0), [builder.add(start, builder.mul(stride, ir.Constant(long, r)))]) for r in range(rows)
    ]
    block_pointers = [
        builder.gep(data(2), [builder.add(first_weight, builder.mul(block, ir.Constant(long, b)))])
        for b in range(BLOCKS)
    ]
    before = builder.block
    loop, after = builder.append_basic_block("groups"), builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(long)
    index.add_incoming(ir.Constant(long, 0), before)
    sums = [[builder.phi(vector) for _ in range(BLOCKS)] for _ in range(rows)]
    for of_row in sums:
        for one in of_row:
            one.add_incoming(ir.Constant(vector, [0] * LANES), before)
    offset = builder.mul(index, ir.Constant(long, 4 * LANES))
    weights = [_load(builder, builder.gep(p, [offset]), bytes_vector) for p in block_pointers]
    multiply = builder.module.declare_intrinsic(
        _INSTRUCTION, (), ir.FunctionType(vector, [vector, bytes_vector, bytes_vector])
    )
    zeros = ir.Constant(ir.VectorType(word, LANES), [0] * LANES)
    place = builder.mul(index, ir.Constant(long, GROUP))
    for of_row, pointer in zip(sums, row_pointers, strict=True):
        four = _load(builder, builder.gep(pointer, [place]), word)
        lone = builder.insert_element(ir.Constant(vector, ir.Undefined), four, ir.Constant(word, 0))
        spread = builder.bitcast(builder.shuffle_vector(lone, ir.Constant(vector, ir.Undefined), zeros), bytes_vector)
        for one, weight in zip(of_row, weights, strict=True):
            one.add_incoming(builder.call(multiply, [one, spread, weight]), loop)
    following = builder.add(index, ir.Constant(long, 1))
    index.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, groups), loop, after)
    builder.position_at_end(after)
    floats = ir.VectorType(ir.FloatType(), LANES)
    for b in range(BLOCKS):
        output = builder.add(first_output, ir.Constant(long, b * LANES))
        shift = _load(builder, builder.gep(data(4), [output]), vector)
        scale = _load(builder, builder.gep(data(5), [output]), floats)
        for r, of_row in enumerate(sums):
            product = builder.fmul(builder.sitofp(builder.sub(of_row[b].incomings[1][0], shift), floats), scale)
            place = builder.add(first_out, builder.mul(out_stride, ir.Constant(long, r)))
            there = builder.gep(data(6), [builder.add(place, ir.Constant(long, b * LANES))])
            builder.store(product, builder.bitcast(there, floats.as_pointer()), align=4)


def _load(builder, pointer, kind):
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=1)


_tile_1, _tile_2, _tile_3, _tile_4, _tile_5, _tile_6 = (_tile(rows) for rows in range(1, ROWS + 1))


@njit(cache=True, nogil=True)
def _multiply(rows, packed, shift, scale, out):
    count, outputs = out.shape
    groups = packed.size // (shift.size * GROUP)
    stride, block = rows.shape[1], groups * LANES * GROUP
    flat_rows, flat_out, spare = rows.ravel(), out.ravel(), np.empty(ROWS * TILE, np.float32)
    for n in range(0, outputs, TILE):
        first, is_whole = n // LANES * block, n + TILE <= outputs
        target, out_stride = (flat_out, outputs) if is_whole else (spare, TILE)
        sizes = (stride, block, groups, out_stride)
        r = 0
        while r < count:
            taken = min(ROWS, count - r)
            place = (r * stride, first, n, r * outputs + n if is_whole else 0)
            if taken == 6:
                _tile_6(flat_rows, place, packed, sizes, shift, scale, target)
            elif taken == 5:
                _tile_5(flat_rows, place, packed, sizes, shift, scale, target)
            elif taken == 4:
                _tile_4(flat_rows, place, packed, sizes, shift, scale, target)
            elif taken == 3:
                _tile_3(flat_rows, place, packed, sizes, shift, scale, target)
            elif taken == 2:
                _tile_2(flat_rows, place, packed, sizes, shift, scale, target)
            else:
                _tile_1(flat_rows, place, packed, sizes, shift, scale, target)
            if not is_whole:  # the last tile is wider than what is left of the outputs
                for i in range(taken):
                    out[r + i, n:] = spare[i * TILE : i * TILE + outputs - n]
            r += taken


class VnniProduct:
    """One matrix of int8 rows, packed for VNNI; does what `Product` does."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, limit: int = FULL) -> None:
        quantized, scale = quantize_weight(weight, limit=limit)
        outputs, self._inputs = quantized.shape
        padded, inputs = -(-outputs // TILE) * TILE, -(-self._inputs // GROUP) * GROUP
        full = torch.zeros(padded, inputs, dtype=torch.int8)
        full[:outputs, : self._inputs] = quantized
        packed = full.view(padded // LANES, LANES, inputs // GROUP, GROUP).transpose(1, 2).contiguous()
        self._packed = packed.view(-1).numpy()
        self._shift: NDArray[np.int32] = (full.sum(dim=1, dtype=torch.int32) * ZERO_POINT).numpy()
        self._scale = torch.nn.functional.pad(scale, (0, padded - outputs)).numpy()
        offset = torch.zeros(outputs) if bias is None else bias.detach().float().clone()
        self.offset: NDArray[np.float32] = offset.numpy()

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the product, float32, still without the rows' scales and the offset."""
        if self._inputs % GROUP:
            rows = torch.nn.functional.pad(rows, (0, GROUP - self._inputs % GROUP))
        out = torch.empty(rows.size(0), self.offset.size)
        _multiply(rows.numpy(), self._packed, self._shift, self._scale, out.numpy())
        return out
