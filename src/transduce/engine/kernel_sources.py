"""What stands between two matrix products of the int8 network, each in one pass over its rows, for numba to compile.

A product of quantised rows comes out as float32 without its rows' scales: y = raw * scale + bias. Each kernel reads it,
does all that comes before the next product (residual, normalisation, attention, activation), and writes the rows that
the next product takes, quantised again:

    q = round(x / scale) + 128,   scale = max |x| / 127          one scale for each row

A row is computed by the same instructions whatever stands beside it, so its result does not depend on the batch.
The same in plain torch is `plain_kernels.py`. `machine_code.py` reads this module when there is no compiled code yet;
`fused_kernels.py` calls what came of it. Nothing here allocates: a kernel is given its room.
"""

import math

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]

from transduce.engine.calls import MOST_ARGUMENTS
from transduce.engine.trampoline import call_at
from transduce.engine.vnni_products import GROUP, LANES, ROWS, TILE
from transduce.engine.vnni_tile import TILES
from transduce.kernel_arithmetic import HALF, ONE, SIZE, ZERO, Entries, bits_of_float, exp, float_of_bits, inlined

LARGEST, SMALLEST_SCALE = np.float32(127.0), np.float32(1e-30)
MIDDLE = np.float32(128.5)  # the zero point, and a half so that cutting off rounds
LOWEST, INFINITY = np.float32(-3e38), np.float32(np.inf)
INV_SQRT_2 = np.float32(math.sqrt(0.5))
EPSILON = np.float32(1e-6)
WITHOUT_SIGN, LEAST = np.int32(0x7FFFFFFF), np.int32(-0x80000000)

_tile_1, _tile_2, _tile_3, _tile_4, _tile_5, _tile_6 = TILES
USUAL_WIDTH = 64  # of a head

F32, U8, I8, U16, I32, I64 = (
    types.CPointer(kind) for kind in (types.float32, types.uint8, types.int8, types.uint16, types.int32, types.int64)
)

ENTRIES = Entries()
entry = ENTRIES.entry


@inlined
def _ordered(x):
    """Return an int32 that grows with x: a maximum of integers fits into vectors, one of floats does not."""
    bits = bits_of_float(x)
    return np.int32(bits ^ ((bits >> np.int32(31)) & WITHOUT_SIGN))


@inlined
def _from_ordered(bits):
    return float_of_bits(np.int32(bits ^ ((bits >> np.int32(31)) & WITHOUT_SIGN)))


@inlined
def _narrow(x):
    """Return the upper half of a float's bits, rounded: bf16, in which keys and values are kept."""
    bits = bits_of_float(x)
    return np.uint16((bits + np.int32(0x7FFF) + ((bits >> np.int32(16)) & np.int32(1))) >> np.int32(16))


@inlined
def _widen(half):
    return float_of_bits(np.int32(np.int32(half) << np.int32(16)))


@inlined
def _quantize(row, out):
    """Write a row as bytes around 128 and return its scale."""
    largest = np.int32(0)
    for i in range(row.size):
        largest = max(largest, np.int32(bits_of_float(row[i]) & WITHOUT_SIGN))
    scale = max(float_of_bits(largest) / LARGEST, SMALLEST_SCALE)
    inverse = ONE / scale
    for i in range(row.size):
        out[i] = np.uint8(np.int32(row[i] * inverse + MIDDLE))
    return scale


@inlined
def _normalize(row, gain, bias, out):
    """LayerNorm of one row into `out`."""
    width = np.float32(row.size)
    total = ZERO
    for i in range(row.size):
        total += row[i]
    mean = total / width
    squares = ZERO
    for i in range(row.size):
        squares += (row[i] - mean) * (row[i] - mean)
    inverse = ONE / np.float32(math.sqrt(squares / width + EPSILON))
    for i in range(row.size):
        out[i] = (row[i] - mean) * inverse * gain[i] + bias[i]


@entry(I64, I8, F32, F32, I64, F32, SIZE, SIZE)
def embed(tokens, packed, scales, positions, position_of_row, x, rows, width):
    """X = scale * row of the quantised table + position; the table is packed as for `multiply`."""
    tokens_, places, x_ = carray(tokens, rows), carray(position_of_row, rows), carray(x, (rows, width))
    inputs = -(-width // GROUP) * GROUP
    for r in range(rows):
        token, place = tokens_[r], places[r]
        first = token // TILE * TILE * inputs + token % TILE * GROUP
        bytes_, scale = carray(packed, first + TILE * inputs), carray(scales, token + 1)[token]
        position, out = carray(positions, (place + 1, width))[place], x_[r]
        for group in range(width // GROUP):
            for i in range(GROUP):
                k = group * GROUP + i
                out[k] = np.float32(bytes_[first + group * TILE * GROUP + i]) * scale + position[k]
        for k in range(width // GROUP * GROUP, width):
            out[k] = np.float32(bytes_[first + k // GROUP * TILE * GROUP + k % GROUP]) * scale + position[k]


@entry(F32, U8, F32, SIZE, SIZE)
def quantize(x, q, s, rows, width):
    """Quantise rows as they are."""
    x_, q_, s_ = carray(x, (rows, width)), carray(q, (rows, width)), carray(s, rows)
    for r in range(rows):
        s_[r] = _quantize(x_[r], q_[r])


@entry(F32, F32, F32, U8, F32, F32, SIZE, SIZE)
def normalize(x, gain, bias, q, s, room, rows, width):
    """Quantise rows after normalising them; x stays as it is."""
    x_, q_, s_ = carray(x, (rows, width)), carray(q, (rows, width)), carray(s, rows)
    gain_, bias_, row = carray(gain, width), carray(bias, width), carray(room, width)
    for r in range(rows):
        _normalize(x_[r], gain_, bias_, row)
        s_[r] = _quantize(row, q_[r])


@entry(F32, F32, F32, F32, F32, F32, SIZE, U8, F32, SIZE, SIZE)
def add_and_normalize(raw, scale, offset, x, gain, bias, is_pre_norm, q, s, rows, width):
    """X += the product; quantise LayerNorm(x), which with post-norm becomes x. The product is written over."""
    raw_, x_, q_ = carray(raw, (rows, width)), carray(x, (rows, width)), carray(q, (rows, width))
    scale_, s_, offset_ = carray(scale, rows), carray(s, rows), carray(offset, width)
    gain_, bias_ = carray(gain, width), carray(bias, width)
    for r in range(rows):
        here, row, factor = x_[r], raw_[r], scale_[r]
        for i in range(width):
            here[i] += row[i] * factor + offset_[i]
        _normalize(here, gain_, bias_, row)
        if is_pre_norm == 0:
            for i in range(width):
                here[i] = row[i]
        s_[r] = _quantize(row, q_[r])


@entry(F32, F32, F32, SIZE, U8, F32, SIZE, SIZE)
def activate(raw, scale, offset, is_gelu, q, s, rows, width):
    """Quantise the activation of the product, which is written over."""
    raw_, q_, scale_, s_ = carray(raw, (rows, width)), carray(q, (rows, width)), carray(scale, rows), carray(s, rows)
    offset_ = carray(offset, width)
    for r in range(rows):
        row, factor = raw_[r], scale_[r]
        if is_gelu != 0:
            for i in range(width):
                value = row[i] * factor + offset_[i]
                row[i] = HALF * value * (ONE + np.float32(math.erf(value * INV_SQRT_2)))
        else:
            for i in range(width):
                row[i] = max(row[i] * factor + offset_[i], ZERO)
        s_[r] = _quantize(row, q_[r])


@inlined
def _rescale(new, factor, offset, out):
    """Write part of a row of a product in bf16."""
    for i in range(out.size):
        out[i] = _narrow(new[i] * factor + offset[i])


@entry(F32, F32, F32, U16, U16, SIZE, SIZE)
def rescale(raw, scale, offset, first, second, rows, width):
    """Write the product's columns into two tables of equal width, in bf16."""
    raw_, scale_, offset_ = carray(raw, (rows, 2 * width)), carray(scale, rows), carray(offset, 2 * width)
    first_, second_ = carray(first, (rows, width)), carray(second, (rows, width))
    for r in range(rows):
        _rescale(raw_[r, :width], scale_[r], offset_[:width], first_[r])
        _rescale(raw_[r, width:], scale_[r], offset_[width:], second_[r])


@inlined
def _attend_heads(query, keys, values, slots, count, heads, width, weights, mixed):
    """One query's attention over `count` keys, found in the tables at `slots`, in every head of `width`."""
    padded = -(-count // LANES) * LANES
    for head in range(heads):
        low = head * width
        query_head, mixed_head = query[low : low + width], mixed[low : low + width]
        largest = LOWEST
        for p in range(count):
            key = keys[slots[p], low : low + width]
            score = ZERO
            for e in range(width):
                score += query_head[e] * _widen(key[e])
            weights[p] = score
            largest = max(largest, score)
        for p in range(count, padded):
            weights[p] = LOWEST
        for block in range(0, padded, LANES):  # of a known size, so that it becomes one vector
            for lane in range(LANES):
                weights[block + lane] = exp(weights[block + lane] - largest)
        total = ZERO
        for p in range(count):
            total += weights[p]
        inverse = ONE / total
        for e in range(width):
            mixed_head[e] = ZERO
        for p in range(count):
            value, weight = values[slots[p], low : low + width], weights[p] * inverse
            for e in range(width):
                mixed_head[e] += weight * _widen(value[e])


@inlined
def _attend_row(query, keys, values, slots, count, heads, weights, mixed):
    """Attend, with code of its own for heads of the usual width, whose loops then need no ends."""
    if query.size == USUAL_WIDTH * heads:
        _attend_heads(query, keys, values, slots, count, heads, USUAL_WIDTH, weights, mixed)
    else:
        _attend_heads(query, keys, values, slots, count, heads, query.size // heads, weights, mixed)


@entry(F32, F32, F32, U16, U16, I64, I64, SIZE, SIZE, U8, F32, F32, SIZE, SIZE)
def self_attend(raw, scale, offset, keys, values, where, slots, capacity, heads, q, s, room, rows, width):
    """Store each row's key and value at `first_slot` + row, then attend over `count` that `slots` names of it."""
    first_slot, count = carray(where, 2)
    raw_, scale_, offset_ = carray(raw, (rows, 3 * width)), carray(scale, rows), carray(offset, 3 * width)
    q_, s_, slots_ = carray(q, (rows, width)), carray(s, rows), carray(slots, (rows, capacity))
    keys_, values_ = carray(keys, (first_slot + rows, width)), carray(values, (first_slot + rows, width))
    room_ = carray(room, 2 * width + count + LANES)
    query, mixed, weights = room_[:width], room_[width : 2 * width], room_[2 * width :]
    for r in range(rows):
        new, factor = raw_[r], scale_[r]
        for i in range(width):
            query[i] = new[i] * factor + offset_[i]
        _rescale(new[width : 2 * width], factor, offset_[width : 2 * width], keys_[first_slot + r])
        _rescale(new[2 * width :], factor, offset_[2 * width :], values_[first_slot + r])
        _attend_row(query, keys_, values_, slots_[r], count, heads, weights, mixed)
        s_[r] = _quantize(mixed, q_[r])


@entry(F32, F32, F32, U16, U16, I64, I64, I64, SIZE, U8, F32, F32, SIZE, SIZE, SIZE, SIZE)
def cross_attend(
    raw, scale, offset, keys, values, starts, lengths, places, heads, q, s, room, longest, rows, raw_width, width
):
    """Attend over the tokens of each row's own source sentence, which lie side by side; `places` counts from 0."""
    raw_, scale_, offset_ = carray(raw, (rows, raw_width)), carray(scale, rows), carray(offset, raw_width)
    q_, s_, starts_, lengths_ = carray(q, (rows, width)), carray(s, rows), carray(starts, rows), carray(lengths, rows)
    room_, slots = carray(room, 2 * width + longest + LANES), carray(places, longest)
    query, mixed, weights = room_[:width], room_[width : 2 * width], room_[2 * width :]
    for r in range(rows):
        new, factor, first, length = raw_[r], scale_[r], starts_[r], lengths_[r]
        keys_, values_ = carray(keys, (first + length, width)), carray(values, (first + length, width))
        for i in range(width):
            query[i] = new[i] * factor + offset_[i]
        _attend_row(query, keys_[first:], values_[first:], slots, length, heads, weights, mixed)
        s_[r] = _quantize(mixed, q_[r])


@entry(F32, F32, F32, U16, U16, SIZE, SIZE)
def store(raw, scale, offset, keys, values, rows, width):
    """Write the keys and values, which follow the queries in a product, into their tables."""
    raw_, scale_, offset_ = carray(raw, (rows, 3 * width)), carray(scale, rows), carray(offset, 3 * width)
    keys_, values_ = carray(keys, (rows, width)), carray(values, (rows, width))
    for r in range(rows):
        new, factor = raw_[r], scale_[r]
        _rescale(new[width : 2 * width], factor, offset_[width : 2 * width], keys_[r])
        _rescale(new[2 * width :], factor, offset_[2 * width :], values_[r])


@entry(F32, U8, SIZE, SIZE, SIZE)
def hide(raw, is_hidden, sentences, beams, width):
    """Write -inf over what is hidden of a sentence's list, for each of its beams."""
    raw_, hidden = carray(raw, (sentences, beams, width)), carray(is_hidden, (sentences, width))
    for n in range(sentences):
        for b in range(beams):
            for i in range(width):
                if hidden[n, i] != 0:
                    raw_[n, b, i] = -INFINITY


@entry(F32, F32, SIZE, SIZE)
def log_softmax(raw, scale, rows, width):
    """Raw = log softmax(raw * scale), row by row, in place; `scale` is positive."""
    raw_, scale_ = carray(raw, (rows, width)), carray(scale, rows)
    for r in range(rows):
        row, factor = raw_[r], scale_[r]
        bits = LEAST
        for i in range(width):
            bits = max(bits, _ordered(row[i]))
        largest = _from_ordered(bits)
        total = ZERO
        for i in range(width):
            total += exp((row[i] - largest) * factor)
        shift = largest * factor + np.float32(math.log(total))
        for i in range(width):
            row[i] = row[i] * factor - shift


@entry(U8, I8, I32, F32, F32, F32, SIZE, SIZE, SIZE)
def multiply(rows, packed, shift, scale, out, room, count, outputs, inputs):
    """Out = (rows - 128) W^T * scale: `vnni_products.py` says how the weights lie."""
    padded, groups = -(-outputs // TILE) * TILE, inputs // GROUP
    rows_, packed_ = carray(rows, count * inputs), carray(packed, padded * inputs)
    shift_, scale_ = carray(shift, padded), carray(scale, padded)
    out_, spare = carray(out, count * outputs), carray(room, ROWS * TILE)
    for n in range(0, outputs, TILE):
        first, is_whole = n * inputs, n + TILE <= outputs
        target, out_stride = (out_, outputs) if is_whole else (spare, TILE)
        sizes = (inputs, groups, out_stride)
        r = 0
        while r < count:
            taken = min(ROWS, count - r)
            place = (r * inputs, first, n, r * outputs + n if is_whole else 0)
            if taken == 6:
                _tile_6(rows_, place, packed_, sizes, shift_, scale_, target)
            elif taken == 5:
                _tile_5(rows_, place, packed_, sizes, shift_, scale_, target)
            elif taken == 4:
                _tile_4(rows_, place, packed_, sizes, shift_, scale_, target)
            elif taken == 3:
                _tile_3(rows_, place, packed_, sizes, shift_, scale_, target)
            elif taken == 2:
                _tile_2(rows_, place, packed_, sizes, shift_, scale_, target)
            else:
                _tile_1(rows_, place, packed_, sizes, shift_, scale_, target)
            if not is_whole:  # the last tile is wider than what is left of the outputs
                for i in range(taken):
                    for j in range(outputs - n):
                        out_[(r + i) * outputs + n + j] = spare[i * TILE + j]
            r += taken


@entry(I64, SIZE)
def run(calls, count):
    """Make the calls that `calls.py` noted, one after the other."""
    for n in range(count):
        call_at(calls, n * (MOST_ARGUMENTS + 1))
