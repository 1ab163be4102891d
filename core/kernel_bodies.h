// The kernels, written once over 16 lanes. The .cpp of an instruction set includes a vector_*.h, then this file.
// Use no templates of the standard library here: the linker could choose their AVX-512 form for the whole program.
#pragma once
#include <math.h>

#include "kernels.h"

namespace {

using namespace transduce;

// A tile keeps its sums in registers: without full unrolling GCC 12 would write them to memory in every iteration.
#if defined(__clang__) || !defined(__GNUC__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

inline void put(const Output& out, Index row, Index column, Lanes lanes) {
    float* place = out.values + row * out.stride + column;
    store(place, out.adds ? load(place) + lanes : lanes);
}

template <int ROWS, int BLOCKS>
void int8_tile(const Int8Matrix& matrix, const Int8Rows& rows, Index row, Index block, Index column, const Output& out) {
    Sums sums[ROWS][BLOCKS];
    const Index groups = matrix.inputs / GROUP;
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int b = 0; b < BLOCKS; ++b) sums[r][b] = start(matrix.correction + (block + b) * LANES);
    const int8_t* x = rows.values + row * rows.stride;
    const int8_t* w = matrix.weights + block * groups * PADDING;
    for (Index g = 0; g < groups; ++g, x += GROUP, w += PADDING) {
        Weights weights[BLOCKS];
        UNROLL for (int b = 0; b < BLOCKS; ++b) weights[b] = load_weights(w + b * groups * PADDING);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const Activations activations = load_activations(x + r * rows.stride);
            UNROLL for (int b = 0; b < BLOCKS; ++b) add_products(sums[r][b], activations, weights[b]);
        }
    }
    UNROLL for (int b = 0; b < BLOCKS; ++b) {
        const Lanes scales = load(matrix.scales + (block + b) * LANES), bias = load(matrix.bias + (block + b) * LANES);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const Lanes factor = all(rows.scales[row + r]) * scales;
            put(out, row + r, column + b * LANES, multiply_add(as_floats(sums[r][b]), factor, bias));
        }
    }
}

template <int ROWS, int BLOCKS>
void float_tile(const FloatMatrix& matrix, const FloatRows& rows, Index row, Index block, Index column, const Output& out) {
    Lanes sums[ROWS][BLOCKS];
    UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int b = 0; b < BLOCKS; ++b) sums[r][b] = all(0.0f);
    const float* x = rows.values + row * rows.stride;
    const float* w = matrix.weights + block * matrix.inputs * LANES;
    for (Index i = 0; i < matrix.inputs; ++i, ++x, w += LANES) {
        Lanes weights[BLOCKS];
        UNROLL for (int b = 0; b < BLOCKS; ++b) weights[b] = load(w + b * matrix.inputs * LANES);
        UNROLL for (int r = 0; r < ROWS; ++r) {
            const Lanes input = all(x[r * rows.stride]);
            UNROLL for (int b = 0; b < BLOCKS; ++b) sums[r][b] = multiply_add(input, weights[b], sums[r][b]);
        }
    }
    UNROLL for (int b = 0; b < BLOCKS; ++b) {
        const Lanes bias = load(matrix.bias + (block + b) * LANES);
        UNROLL for (int r = 0; r < ROWS; ++r) put(out, row + r, column + b * LANES, sums[r][b] + bias);
    }
}

template <int ROWS>
void tile(const Int8Matrix& matrix, const Int8Rows& rows, Index row, Index block, Index column, const Output& out) {
    int8_tile<ROWS, BLOCKS_AT_ONCE>(matrix, rows, row, block, column, out);
}

template <int ROWS>
void tile(const FloatMatrix& matrix, const FloatRows& rows, Index row, Index block, Index column, const Output& out) {
    float_tile<ROWS, BLOCKS_AT_ONCE>(matrix, rows, row, block, column, out);
}

template <int ROWS, class Matrix, class Rows>
void last_tile(const Matrix& matrix, const Rows& rows, Index row, Index block, Index column, const Output& out) {
    if (rows.count - row == ROWS) tile<ROWS>(matrix, rows, row, block, column, out);
    else if constexpr (ROWS > 1) last_tile<ROWS - 1>(matrix, rows, row, block, column, out);
}

template <class Matrix, class Rows>
void multiply(const Matrix& matrix, const Rows& rows, Index first, Index last, const Output& out) {
    for (Index block = first; block < last; block += BLOCKS_AT_ONCE) {
        const Index column = (block - first) * LANES;
        Index row = 0;
        for (; row + MOST_ROWS <= rows.count; row += MOST_ROWS) tile<MOST_ROWS>(matrix, rows, row, block, column, out);
        last_tile<MOST_ROWS>(matrix, rows, row, block, column, out);
    }
}

void multiply_int8(const Int8Matrix& matrix, const Int8Rows& rows, Index first, Index last, const Output& out) {
    multiply(matrix, rows, first, last, out);
}

void multiply_float(const FloatMatrix& matrix, const FloatRows& rows, Index first, Index last, const Output& out) {
    multiply(matrix, rows, first, last, out);
}

// q = round(127 x / max|x|) of each row; the result does not depend on the other rows.
void quantize(const float* rows, Index count, Index width, int8_t* values, float* scales) {
    for (Index r = 0; r < count; ++r, rows += width, values += width) {
        Lanes most = all(0.0f);
        for (Index i = 0; i < width; i += LANES) most = larger_magnitude(most, load(rows + i));
        float each[LANES], magnitude = 0.0f;
        store(each, most);
        bool is_number = true;
        for (float one : each) {
            is_number = is_number && one <= 3.4028234e38f;
            magnitude = one > magnitude ? one : magnitude;
        }
        // A row that holds NaN or infinity becomes zeros with the scale NaN, so that every product with it is NaN.
        scales[r] = is_number ? magnitude / 127.0f : NAN;
        const Lanes factor = all(is_number && magnitude > 1e-30f ? 127.0f / magnitude : 0.0f);
        for (Index i = 0; i < width; i += LANES)
            store_bytes(values + i, is_number ? load(rows + i) * factor : all(0.0f), FLIP);
    }
}

// LayerNorm(x) = g (x - mean) / sqrt(variance + epsilon) + b
void normalize(const Norm& norm, const float* rows, Index count, Index width, float* normalized) {
    for (Index r = 0; r < count; ++r, rows += width, normalized += width) {
        Lanes total = all(0.0f), squares = all(0.0f);
        for (Index i = 0; i < width; i += LANES) total = total + load(rows + i);
        const Lanes mean = all(sum(total) / norm.width);
        for (Index i = 0; i < width; i += LANES) {
            const Lanes difference = (load(rows + i) - mean) * load(norm.is_real + i);
            squares = multiply_add(difference, difference, squares);
        }
        const Lanes factor = all(1.0f / sqrtf(sum(squares) / norm.width + norm.epsilon));
        for (Index i = 0; i < width; i += LANES) {
            const Lanes scaled = (load(rows + i) - mean) * factor;
            store(normalized + i, multiply_add(scaled, load(norm.gain + i), load(norm.bias + i)));
        }
    }
}

// e^r with r = x - n log 2, by a polynomial.
inline Lanes power_of_fraction(Lanes x, Lanes n) {
    const Lanes r = multiply_add(n, all(2.12194440e-4f), multiply_add(n, all(-0.693359375f), x));
    Lanes p = multiply_add(all(1.9875691500e-4f), r, all(1.3981999507e-3f));
    p = multiply_add(p, r, all(8.3334519073e-3f));
    p = multiply_add(p, r, all(4.1665795894e-2f));
    p = multiply_add(p, r, all(1.6666665459e-1f));
    p = multiply_add(p, r, all(5.0000001201e-1f));
    return multiply_add(p * r, r, r + all(1.0f));
}

// e^x = 2^n e^r with n = round(x / log 2). Below -87 it is 0, above 88 it stays e^88.
inline Lanes exponentials(Lanes x) {
    const Lanes lowest = all(-87.0f), shift = all(12582912.0f);
    const Lanes bounded = where_less(x, lowest, lowest, where_less(all(88.0f), x, all(88.0f), x));
    const Lanes shifted = multiply_add(bounded, all(1.44269504f), shift);
    return where_less(x, lowest, all(0.0f), times_power_of_two(power_of_fraction(bounded, shifted - shift), shifted));
}

inline Lanes sigmoid(Lanes x) { return all(1.0f) / (all(1.0f) + exponentials(all(0.0f) - x)); }

// erf by formula 7.1.26 of Abramowitz and Stegun; its error is below 1.5e-7.
inline Lanes error_function(Lanes x) {
    const Lanes zero = all(0.0f), magnitude = where_less(x, zero, zero - x, x);
    const Lanes t = all(1.0f) / multiply_add(all(0.3275911f), magnitude, all(1.0f));
    Lanes p = multiply_add(all(1.061405429f), t, all(-1.453152027f));
    p = multiply_add(p, t, all(1.421413741f));
    p = multiply_add(p, t, all(-0.284496736f));
    p = multiply_add(p, t, all(0.254829592f));
    const Lanes found = all(1.0f) - p * t * exponentials(zero - magnitude * magnitude);
    return where_less(x, zero, zero - found, found);
}

template <class Function>
void apply(float* values, Index size, Function function) {
    for (Index i = 0; i < size; i += LANES) store(values + i, function(load(values + i)));
}

void activate(Activation activation, float* values, Index size) {
    switch (activation) {
        case Activation::relu:
            return apply(values, size, [](Lanes x) { return larger(all(0.0f), x); });
        case Activation::gelu:  // x Φ(x)
            return apply(values, size, [](Lanes x) {
                return all(0.5f) * x * (all(1.0f) + error_function(x * all(0.70710678f)));
            });
        case Activation::gelu_tanh:  // x (1 + tanh u) / 2 = x σ(2 u)
            return apply(values, size, [](Lanes x) {
                const Lanes cube = x * x * x;
                return x * sigmoid(all(1.5957691f) * multiply_add(all(0.044715f), cube, x));
            });
        case Activation::gelu_sigmoid:
            return apply(values, size, [](Lanes x) { return x * sigmoid(all(1.702f) * x); });
        case Activation::silu:
            return apply(values, size, [](Lanes x) { return x * sigmoid(x); });
    }
}

inline Lanes dot(const float* a, const float* b, Index width) {
    Lanes total = load(a) * load(b);
    for (Index i = LANES; i < width; i += LANES) total = multiply_add(load(a + i), load(b + i), total);
    return total;
}

inline float softmax(float* scores, Index count) {  // returns Σ exp; the caller divides by it
    const Index whole = (count + LANES - 1) / LANES * LANES;
    for (Index i = count; i < whole; ++i) scores[i] = -INFINITY;
    Lanes most = load(scores);
    for (Index i = LANES; i < whole; i += LANES) most = larger(most, load(scores + i));
    const Lanes highest = all(largest(most));
    Lanes total = all(0.0f);
    for (Index i = 0; i < whole; i += LANES) {
        const Lanes powers = exponentials(load(scores + i) - highest);
        total = total + powers;
        store(scores + i, powers);
    }
    return sum(total);
}

// softmax(q Kᵀ) V of each head; 1 / √d_k is already in q.
void attend(const Attention& job) {
    const Index room = (job.count + LANES - 1) / LANES * LANES;
    for (Index head = 0; head < job.heads; ++head) {
        float* weights = job.weights + head * room;
        const float* query = job.query + head * job.key_width;
        const float* keys = job.keys + head * job.key_width;
        const float* values = job.values + head * job.value_width;
        for (Index i = 0; i < job.count; ++i) {
            const Index place = job.places ? job.places[i] : job.first + i;
            weights[i] = sum(dot(query, keys + place * job.key_stride, job.key_width));
        }
        const Lanes share = all(1.0f / softmax(weights, job.count));
        for (Index i = 0; i < room; i += LANES) store(weights + i, load(weights + i) * share);
        for (Index g = 0; g < job.value_width; g += LANES) {
            Lanes mixed = all(0.0f);
            for (Index i = 0; i < job.count; ++i) {
                const Index place = job.places ? job.places[i] : job.first + i;
                mixed = multiply_add(all(weights[i]), load(values + place * job.value_stride + g), mixed);
            }
            store(job.mixed + head * job.value_width + g, mixed);
        }
    }
}

void recur(const float* gate, const float* candidate, Index width, float* state, float* mixed) {
    for (Index i = 0; i < width; i += LANES) {
        const Lanes kept = sigmoid(load(gate + i)), fresh = (all(1.0f) - kept) * load(candidate + i);
        const Lanes next = multiply_add(kept, load(state + i), fresh);
        store(state + i, next);
        store(mixed + i, larger(all(0.0f), next));
    }
}

float largest_of(const float* row, Index width) {
    Lanes most = load(row);
    for (Index i = LANES; i < width; i += LANES) most = larger(most, load(row + i));
    return largest(most);
}

float sum_of_exponentials(const float* row, Index width, float highest) {
    Lanes total = all(0.0f);
    for (Index i = 0; i < width; i += LANES) total = total + exponentials(load(row + i) - all(highest));
    return sum(total);
}

void insert(const Best& best, float value, int32_t place) {
    Index i = best.count - 1;
    for (; i > 0 && best.values[i - 1] < value; --i) {
        best.values[i] = best.values[i - 1];
        best.places[i] = best.places[i - 1];
    }
    best.values[i] = value;
    best.places[i] = place;
}

void keep_best(const float* row, Index width, Index first_place, const Best& best) {
    float* last = best.values + best.count - 1;
    for (Index i = 0; i < width; i += LANES) {
        if (!greater_bits(load(row + i), all(*last))) continue;
        for (Index j = i; j < i + LANES; ++j)
            if (row[j] > *last) insert(best, row[j], (int32_t)(first_place + j));
    }
}

void subtract(float* row, Index width, float number) {
    for (Index i = 0; i < width; i += LANES) store(row + i, load(row + i) - all(number));
}

float exponential(float x) {
    float found[LANES];
    store(found, exponentials(all(x)));
    return found[0];
}

}  // namespace

#include "training_bodies.h"

namespace {

constexpr TrainingKernels training = training_table();

constexpr Kernels table(const char* name) {
    return {name,  &training, multiply_int8, multiply_float, quantize,           normalize, activate, attend,
            recur, largest_of,    sum_of_exponentials, keep_best, subtract,  exponential};
}

}  // namespace
