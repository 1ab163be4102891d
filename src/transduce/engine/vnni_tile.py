"""One tile of the product that `vnni_products.py` describes, instruction by instruction; read when kernels compile."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from transduce.engine.vnni_products import BLOCKS, GROUP, LANES, ROWS

_INSTRUCTION = "llvm.x86.avx512.vpdpbusd.512"


def _tile(rows: int) -> Any:
    """Return a function that writes `rows` rows by 64 outputs of the product to `out`."""

    @intrinsic
    def tile(typing_context, inputs, place, weights, sizes, shift, scale, out):
        def generate(context, builder, signature, arguments):
            _build_tile(context, builder, signature, arguments, rows=rows)
            return context.get_dummy_value()

        places, extents = types.UniTuple(types.int64, 4), types.UniTuple(types.int64, 3)
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
    stride, groups, out_stride = (builder.extract_value(arguments[3], n) for n in range(3))
    row_pointers = [
        builder.gep(data(0), [builder.add(start, builder.mul(stride, ir.Constant(long, r)))]) for r in range(rows)
    ]
    first_weights = builder.gep(data(2), [first_weight])
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
    here = builder.gep(first_weights, [builder.mul(index, ir.Constant(long, BLOCKS * LANES * GROUP))])
    block_pointers = [builder.gep(here, [ir.Constant(long, b * LANES * GROUP)]) for b in range(BLOCKS)]
    weights = [_load(builder, pointer, bytes_vector) for pointer in block_pointers]
    _prefetch(builder, block_pointers, distance=builder.mul(groups, ir.Constant(long, BLOCKS * LANES * GROUP)))
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


def _prefetch(builder, pointers, *, distance):
    """Ask for what the next tile reads, so that it is in the second cache by then; beyond the end it does nothing."""
    byte_pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", (byte_pointer,), ir.FunctionType(ir.VoidType(), [byte_pointer, word, word, word])
    )
    for pointer in pointers:
        there = builder.bitcast(builder.gep(pointer, [distance]), byte_pointer)
        builder.call(fetch, [there, ir.Constant(word, 0), ir.Constant(word, 2), ir.Constant(word, 1)])


def _load(builder, pointer, kind):
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=1)


TILES = tuple(_tile(rows) for rows in range(1, ROWS + 1))
