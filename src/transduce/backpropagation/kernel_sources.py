"""Kernels for the operations between the matrix products of bf16 training, which numba compiles.

torch makes a pass over memory for every operation, and often another to convert between bf16 and float32. A kernel here
reads a row once, computes in float32, and writes the row once. A bf16 number is an int16 with its bits, the upper half
of a float32. The module that calls a kernel states its equation and computes the same with torch's operations.

Sums run over rows in order, so a result depends only on its inputs. `machine_code.py` imports this module if there is
no compiled code yet; `fused_kernels.py` calls the compiled code. A kernel allocates no memory: `room` is its workspace.
"""

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]

from transduce.kernel_arithmetic import ONE, SIZE, ZERO, Entries, bits_of_float, exp, float_of_bits, inlined

LEAST = np.int16(-0x8000)

F32, BF16, BOOL, I64 = (types.CPointer(kind) for kind in (types.float32, types.int16, types.uint8, types.int64))

ENTRIES = Entries()
entry = ENTRIES.entry


@inlined
def _wide(bits):
    """Return the float32 with these upper 16 bits: convert bf16 to float32."""
    return float_of_bits(np.int32(bits) << np.int32(16))


@inlined
def _narrow(x):
    """Return the upper 16 bits of a float32, rounded to nearest, ties to even: convert float32 to bf16."""
    bits = bits_of_float(x)
    return np.int16((bits + np.int32(0x7FFF) + ((bits >> np.int32(16)) & np.int32(1))) >> np.int32(16))


@inlined
def _ordered(bits):
    """Map bf16 bits to an int16 of the same order, or back; unlike a float maximum, an integer maximum vectorises."""
    return np.int16(bits ^ ((bits >> np.int16(15)) & np.int16(0x7FFF)))


@entry(BF16, I64, F32, F32, F32, SIZE, SIZE, SIZE)
def label_gradients(logits, label, extra, statistics, room, labels, rows, width):
    """Replace logits z by softmax(z), plus `extra` at the label; set rows without a label to 0.

    The statistics of a row are the logit of its label, its highest logit, and Σ e^(z - highest).
    """
    logits_, label_, statistics_ = carray(logits, (rows, width)), carray(label, labels), carray(statistics, (labels, 3))
    exponential_, extra_ = carray(room, width), carray(extra, 1)[0]
    for row in range(labels):
        z, found, right = logits_[row], statistics_[row], label_[row]
        ordered = LEAST
        for v in range(width):
            ordered = max(ordered, _ordered(z[v]))
        highest = _wide(_ordered(ordered))
        found[0], found[1] = _wide(z[right]), highest
        total = ZERO
        for v in range(width):
            exponential = exp(_wide(z[v]) - highest)
            exponential_[v] = exponential
            total += exponential
        found[2] = total
        share = ONE / total
        for v in range(width):
            z[v] = _narrow(exponential_[v] * share)
        z[right] = _narrow(exponential_[right] * share + extra_)
    for row in range(labels, rows):
        z = logits_[row]
        for v in range(width):
            z[v] = 0


@entry(F32, BF16, SIZE)
def add_to(total, addend, count):
    """Add a bf16 vector to a float32 vector in place."""
    total_, addend_ = carray(total, count), carray(addend, count)
    for n in range(count):
        total_[n] += _wide(addend_[n])


@entry(BF16, F32, SIZE, SIZE)
def add_sum_of_rows(matrix, total, rows, width):
    """Add the sum over the rows of a matrix to `total`."""
    matrix_, total_ = carray(matrix, (rows, width)), carray(total, width)
    for n in range(rows):
        row = matrix_[n]
        for o in range(width):
            total_[o] += _wide(row[o])


@entry(BF16, BF16, F32, SIZE, SIZE)
def relu_gradient(gradient, output, total, rows, width):
    """Zero a gradient in place where the output of max(0, ·) is 0, and add its sum over rows to `total`."""
    gradient_, output_, total_ = carray(gradient, (rows, width)), carray(output, (rows, width)), carray(total, width)
    for n in range(rows):
        here, out = gradient_[n], output_[n]
        for f in range(width):
            bits = here[f] if out[f] > 0 else np.int16(0)
            here[f] = bits
            total_[f] += _wide(bits)


@entry(BF16, I64, I64, F32, F32, SIZE, SIZE, SIZE, SIZE, SIZE)
def attention_weights(scores, keys_of, queries_of, scale, room, is_causal, sentences, heads, queries, keys):
    """Replace scores (B·H, Q, K) by softmax(scale · scores) over visible keys; set rows of padding to 0."""
    scores_, exponential_ = carray(scores, (sentences * heads * queries, keys)), carray(room, keys)
    keys_, queries_, scale_ = carray(keys_of, sentences), carray(queries_of, sentences), carray(scale, 1)[0]
    for n in range(sentences * heads):
        sentence = n // heads
        for q in range(queries):
            row = scores_[n * queries + q]
            visible = q + 1 if is_causal != 0 else keys_[sentence]
            if q >= queries_[sentence]:
                visible = 0
            ordered = LEAST
            for k in range(keys):
                ordered = max(ordered, _ordered(row[k]) if k < visible else LEAST)
            highest = _wide(_ordered(ordered)) if visible > 0 else ZERO
            total = ZERO
            for k in range(keys):
                exponential = exp((_wide(row[k]) - highest) * scale_) if k < visible else ZERO
                exponential_[k] = exponential
                total += exponential
            share = ONE / total if visible > 0 else ZERO
            for k in range(keys):
                row[k] = _narrow(exponential_[k] * share)


@entry(BF16, BF16, F32, SIZE, SIZE)
def attention_gradient(gradient, weights, scale, rows, keys):
    """Replace ∂A by α ∂S = α A ∘ (∂A - Σ_k A ∘ ∂A)."""
    gradient_, weights_, scale_ = carray(gradient, (rows, keys)), carray(weights, (rows, keys)), carray(scale, 1)[0]
    for n in range(rows):
        here, weight = gradient_[n], weights_[n]
        total = ZERO
        for k in range(keys):
            total += _wide(weight[k]) * _wide(here[k])
        for k in range(keys):
            here[k] = _narrow(_wide(weight[k]) * (_wide(here[k]) - total) * scale_)


@entry(BF16, BF16, BF16, F32, F32, F32, BF16, BF16, BOOL, F32, F32, SIZE, SIZE, SIZE)
def add_and_norm(x, branch, words, settings, gain, bias, sums, y, kept, statistics, room, threshold, rows, width):
    """Compute z = x + Dropout(branch) and y = LayerNorm(z); store mean and 1 / deviation for the backward pass."""
    x_, branch_, words_ = carray(x, (rows, width)), carray(branch, (rows, width)), carray(words, (rows, width))
    sums_, y_, kept_ = carray(sums, (rows, width)), carray(y, (rows, width)), carray(kept, (rows, width))
    gain_, bias_, z_, statistics_ = (
        carray(gain, width),
        carray(bias, width),
        carray(room, width),
        carray(statistics, (rows, 2)),
    )
    scale, epsilon, least, share = (
        carray(settings, 2)[0],
        carray(settings, 2)[1],
        np.int16(threshold),
        ONE / np.float32(width),
    )
    for n in range(rows):
        x_row, branch_row, word_row, kept_row, sum_row, y_row = x_[n], branch_[n], words_[n], kept_[n], sums_[n], y_[n]
        total = ZERO
        for d in range(width):
            is_kept = word_row[d] >= least
            kept_row[d] = np.uint8(is_kept)
            bits = _narrow(_wide(x_row[d]) + (_wide(branch_row[d]) * scale if is_kept else ZERO))
            sum_row[d] = bits
            z = _wide(bits)
            z_[d] = z
            total += z
        mean = total * share
        square = ZERO
        for d in range(width):
            square += (z_[d] - mean) * (z_[d] - mean)
        inverse = ONE / np.sqrt(square * share + epsilon)
        statistics_[n, 0], statistics_[n, 1] = mean, inverse
        for d in range(width):
            y_row[d] = _narrow((z_[d] - mean) * inverse * gain_[d] + bias_[d])


@entry(BF16, BF16, F32, F32, BOOL, F32, BF16, BF16, F32, F32, SIZE, SIZE)
def norm_gradient(gradient, sums, statistics, gain, kept, scale, to_sum, to_branch, to_norm, room, rows, width):
    """Compute ∂z and Dropout(∂z) of `add_and_norm`, and add the gradients of gain and bias to `to_norm`."""
    gradient_, sums_, kept_ = carray(gradient, (rows, width)), carray(sums, (rows, width)), carray(kept, (rows, width))
    to_sum_, to_branch_ = carray(to_sum, (rows, width)), carray(to_branch, (rows, width))
    statistics_, gain_, scale_ = carray(statistics, (rows, 2)), carray(gain, width), carray(scale, 1)[0]
    to_gain, to_bias = carray(to_norm, (2, width))[0], carray(to_norm, (2, width))[1]
    normal_, scaled_, share = carray(room, (2, width))[0], carray(room, (2, width))[1], ONE / np.float32(width)
    for n in range(rows):
        gradient_row, z_row, kept_row = gradient_[n], sums_[n], kept_[n]
        sum_row, branch_row, mean, inverse = to_sum_[n], to_branch_[n], statistics_[n, 0], statistics_[n, 1]
        total, product = ZERO, ZERO
        for d in range(width):
            here, normal = _wide(gradient_row[d]), (_wide(z_row[d]) - mean) * inverse
            to_gain[d] += here * normal
            to_bias[d] += here
            scaled = here * gain_[d]
            normal_[d], scaled_[d] = normal, scaled
            total += scaled
            product += scaled * normal
        total, product = total * share, product * share
        for d in range(width):
            bits = _narrow((scaled_[d] - total - normal_[d] * product) * inverse)
            sum_row[d] = bits
            branch_row[d] = _narrow(_wide(bits) * scale_) if kept_row[d] != 0 else np.int16(0)
