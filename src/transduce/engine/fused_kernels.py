"""What stands between two matrix products of the int8 network, each in one pass over its rows, compiled by numba.

A product of quantised rows comes out as float32 without its rows' scales: y = raw * scale + bias. Each kernel reads it,
does all that comes before the next product (residual, normalisation, attention, activation), and writes the rows that
the next product takes, quantised again:

    q = round(x / scale) + 128,   scale = max |x| / 127          one scale for each row

A row is computed by the same instructions whatever stands beside it, so its result does not depend on the batch.
The same in plain torch is `plain_kernels.py`; numba is an optional extra. Compiled code is kept on disk.
"""

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
LARGEST, SMALLEST_SCALE = np.float32(127.0), np.float32(1e-30)
MIDDLE = np.float32(128.5)  # the zero point, and a half so that cutting off rounds
LOG2_E, LN2_HIGH, LN2_LOW = np.float32(1.44269504), np.float32(0.693359375), np.float32(-2.12194440e-4)
EXP_5, EXP_4, EXP_3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
EXP_2, EXP_1, EXP_0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
LEAST_EXPONENT = np.float32(-87.0)
INV_SQRT_2 = np.float32(math.sqrt(0.5))
EPSILON = np.float32(1e-6)
WITHOUT_SIGN, LEAST = np.int32(0x7FFFFFFF), np.int32(-0x80000000)

compiled = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
inlined = njit(
    cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy", inline="always"
)


@intrinsic
def _float_of_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@intrinsic
def _bits_of_float(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int32))

    return types.int32(types.float32), generate


@inlined
def _ordered(x):
    """Return an int32 that grows with x: a maximum of integers fits into vectors, one of floats does not."""
    bits = _bits_of_float(x)
    return np.int32(bits ^ ((bits >> np.int32(31)) & WITHOUT_SIGN))


@inlined
def _from_ordered(bits):
    return _float_of_bits(np.int32(bits ^ ((bits >> np.int32(31)) & WITHOUT_SIGN)))


@inlined
def _exp(x):
    """e^x for x <= 0, in arithmetic that fits into vectors; within 2 units of the last place of float32."""
    x = max(x, LEAST_EXPONENT)
    n = np.floor(x * LOG2_E + HALF)
    f = x - n * LN2_HIGH - n * LN2_LOW
    p = ((((EXP_5 * f + EXP_4) * f + EXP_3) * f + EXP_2) * f + EXP_1) * f + EXP_0
    return (p * f * f + f + ONE) * _float_of_bits(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))


@inlined
def _narrow(x):
    """Return the upper half of a float's bits, rounded: bf16, in which keys and values are kept."""
    bits = _bits_of_float(x)
    return np.uint16((bits + np.int32(0x7FFF) + ((bits >> np.int32(16)) & np.int32(1))) >> np.int32(16))


@inlined
def _widen(half):
    return _float_of_bits(np.int32(np.int32(half) << np.int32(16)))


@inlined
def _quantize(row, out):
    """Write a row as bytes around 128 and return its scale."""
    largest = np.int32(0)
    for i in range(row.size):
        largest = max(largest, np.int32(_bits_of_float(row[i]) & WITHOUT_SIGN))
    scale = max(_float_of_bits(largest) / LARGEST, SMALLEST_SCALE)
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


@compiled
def embed(tokens, table, scales, factor, positions, position_of_row, x):
    """X = factor * row of the quantised table + position."""
    for r in range(tokens.size):
        source, scale, position = table[tokens[r]], scales[tokens[r]] * factor, positions[position_of_row[r]]
        out = x[r]
        for i in range(out.size):
            out[i] = np.float32(source[i]) * scale + position[i]


@compiled
def quantize(x, q, s):
    """Quantise rows as they are."""
    for r in range(x.shape[0]):
        s[r] = _quantize(x[r], q[r])


@compiled
def normalize(x, gain, bias, q, s):
    """Quantise rows after normalising them; x stays as it is."""
    row = np.empty(x.shape[1], np.float32)
    for r in range(x.shape[0]):
        _normalize(x[r], gain, bias, row)
        s[r] = _quantize(row, q[r])


@compiled
def add_and_normalize(raw, scale, offset, x, gain, bias, is_pre_norm, q, s):
    """X += the product; quantise LayerNorm(x), which with post-norm becomes x."""
    row = np.empty(x.shape[1], np.float32)
    for r in range(x.shape[0]):
        here, new, factor = x[r], raw[r], scale[r]
        for i in range(here.size):
            here[i] += new[i] * factor + offset[i]
        _normalize(here, gain, bias, row)
        if not is_pre_norm:
            for i in range(here.size):
                here[i] = row[i]
        s[r] = _quantize(row, q[r])


@compiled
def activate(raw, scale, offset, is_gelu, q, s):
    """Quantise the activation of the product."""
    row = np.empty(raw.shape[1], np.float32)
    for r in range(raw.shape[0]):
        new, factor = raw[r], scale[r]
        if is_gelu:
            for i in range(row.size):
                value = new[i] * factor + offset[i]
                row[i] = HALF * value * (ONE + np.float32(math.erf(value * INV_SQRT_2)))
        else:
            for i in range(row.size):
                row[i] = max(new[i] * factor + offset[i], ZERO)
        s[r] = _quantize(row, q[r])


@compiled
def rescale(raw, scale, offset, first, second):
    """Write the product's columns into two tables of equal width, in bf16."""
    width = first.shape[1]
    for r in range(raw.shape[0]):
        new, factor = raw[r], scale[r]
        one, two = first[r], second[r]
        for i in range(width):
            one[i] = _narrow(new[i] * factor + offset[i])
        for i in range(width):
            two[i] = _narrow(new[width + i] * factor + offset[width + i])


@inlined
def _attend_row(query, keys, values, slots, count, heads, weights, mixed):
    """One query's attention over `count` keys, found in the tables at `slots`, in every head."""
    width = query.size // heads
    for h in range(heads):
        low = h * width
        query_head, mixed_head = query[low : low + width], mixed[low : low + width]
        largest = np.float32(-3e38)
        for p in range(count):
            key = keys[slots[p], low : low + width]
            score = ZERO
            for e in range(width):
                score += query_head[e] * _widen(key[e])
            weights[p] = score
            largest = max(largest, score)
        total = ZERO
        for p in range(count):
            weights[p] = _exp(weights[p] - largest)
            total += weights[p]
        inverse = ONE / total
        for e in range(width):
            mixed_head[e] = ZERO
        for p in range(count):
            value, weight = values[slots[p], low : low + width], weights[p] * inverse
            for e in range(width):
                mixed_head[e] += weight * _widen(value[e])


@compiled
def self_attend(raw, scale, offset, keys, values, first_slot, slots, count, heads, q, s):
    """Store each row's key and value at `first_slot` + row, then attend over what `slots` names of each row."""
    width = keys.shape[1]
    query, mixed = np.empty(width, np.float32), np.empty(width, np.float32)
    weights = np.empty(count, np.float32)
    for r in range(raw.shape[0]):
        new, factor, key, value = raw[r], scale[r], keys[first_slot + r], values[first_slot + r]
        for i in range(width):
            query[i] = new[i] * factor + offset[i]
        for i in range(width):
            key[i] = _narrow(new[width + i] * factor + offset[width + i])
        for i in range(width):
            value[i] = _narrow(new[2 * width + i] * factor + offset[2 * width + i])
        _attend_row(query, keys, values, slots[r], count, heads, weights, mixed)
        s[r] = _quantize(mixed, q[r])


@compiled
def cross_attend(raw, scale, offset, keys, values, starts, lengths, heads, q, s):
    """Attend over the tokens of each row's own source sentence, which lie side by side."""
    width = keys.shape[1]
    query, mixed = np.empty(width, np.float32), np.empty(width, np.float32)
    longest = 0
    for r in range(lengths.size):
        longest = max(longest, lengths[r])
    weights, slots = np.empty(longest, np.float32), np.empty(longest, np.int64)
    for r in range(raw.shape[0]):
        new, factor = raw[r], scale[r]
        for i in range(width):
            query[i] = new[i] * factor + offset[i]
        for p in range(lengths[r]):
            slots[p] = starts[r] + p
        _attend_row(query, keys, values, slots, lengths[r], heads, weights, mixed)
        s[r] = _quantize(mixed, q[r])


@compiled
def encoder_attend(raw, scale, offset, keys, values, starts, lengths, heads, q, s):
    """Store all rows' keys and values, then attend over the tokens of each row's own sentence."""
    width = keys.shape[1]
    for r in range(raw.shape[0]):
        new, factor, key, value = raw[r], scale[r], keys[r], values[r]
        for i in range(width):
            key[i] = _narrow(new[width + i] * factor + offset[width + i])
        for i in range(width):
            value[i] = _narrow(new[2 * width + i] * factor + offset[2 * width + i])
    cross_attend(raw, scale, offset, keys, values, starts, lengths, heads, q, s)


@compiled
def log_softmax(raw, scale):
    """Raw = log softmax(raw * scale), row by row, in place; `scale` is positive."""
    for r in range(raw.shape[0]):
        row, factor = raw[r], scale[r]
        bits = LEAST
        for i in range(row.size):
            bits = max(bits, _ordered(row[i]))
        largest = _from_ordered(bits)
        total = ZERO
        for i in range(row.size):
            total += _exp((row[i] - largest) * factor)
        shift = largest * factor + np.float32(math.log(total))
        for i in range(row.size):
            row[i] = row[i] * factor - shift
