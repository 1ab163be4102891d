// Sixteen float lanes in an array: for every processor, slow, with the same bits as the other instruction sets.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace {

struct Lanes { float v[16]; };

template <class Function>
inline Lanes each(Function function) {
    Lanes result;
    for (int i = 0; i < 16; ++i) result.v[i] = function(i);
    return result;
}
inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
inline Lanes load(const float* x) { return each([=](int i) { return x[i]; }); }
inline void store(float* x, Lanes a) { memcpy(x, a.v, sizeof a.v); }
inline Lanes all(float x) { return each([=](int) { return x; }); }
inline Lanes operator+(Lanes a, Lanes b) { return each([&](int i) { return a.v[i] + b.v[i]; }); }
inline Lanes operator-(Lanes a, Lanes b) { return each([&](int i) { return a.v[i] - b.v[i]; }); }
inline Lanes operator*(Lanes a, Lanes b) { return each([&](int i) { return a.v[i] * b.v[i]; }); }
inline Lanes operator/(Lanes a, Lanes b) { return each([&](int i) { return a.v[i] / b.v[i]; }); }
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
    return each([&](int i) { return fmaf(a.v[i], b.v[i], c.v[i]); });
}
inline Lanes larger(Lanes a, Lanes b) {  // b where either is NaN
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes where_less(Lanes a, Lanes b, Lanes then, Lanes otherwise) {
    return each([&](int i) { return a.v[i] < b.v[i] ? then.v[i] : otherwise.v[i]; });
}
inline unsigned greater_bits(Lanes a, Lanes b) {
    unsigned bits = 0;
    for (int i = 0; i < 16; ++i) bits |= (unsigned)(a.v[i] > b.v[i]) << i;
    return bits;
}
inline Lanes larger_magnitude(Lanes a, Lanes b) {  // compares bits without sign, so that NaN is the largest
    return each([&](int i) {
        const uint32_t first = bits_of(a.v[i]), second = bits_of(b.v[i]) & 0x7fffffffu;
        return float_of(first > second ? first : second);
    });
}
inline Lanes times_power_of_two(Lanes a, Lanes shifted) {
    return each([&](int i) { return float_of(bits_of(a.v[i]) + (bits_of(shifted.v[i]) << 23)); });
}
inline void store_bytes(int8_t* x, Lanes a, int) {  // adding 1.5 · 2^23 rounds to the nearest integer, ties to even
    for (int i = 0; i < 16; ++i) x[i] = (int8_t)(bits_of(a.v[i] + 12582912.0f) - bits_of(12582912.0f));
}
inline Lanes load_bfloat16(const uint16_t* x) { return each([=](int i) { return float_of((uint32_t)x[i] << 16); }); }
inline void store_bfloat16(uint16_t* x, Lanes a) {  // rounds to the nearest, ties to even
    for (int i = 0; i < 16; ++i) x[i] = (uint16_t)((bits_of(a.v[i]) + 0x7fff + (bits_of(a.v[i]) >> 16 & 1)) >> 16);
}
inline Lanes load_int16(const int16_t* x) { return each([=](int i) { return (float)x[i]; }); }
inline float sum(Lanes a) {
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; ++i) a.v[i] += a.v[i + half];
    return a.v[0];
}
inline float largest(Lanes a) {
    float best = a.v[0];
    for (int i = 1; i < 16; ++i) best = best > a.v[i] ? best : a.v[i];
    return best;
}

constexpr int FLIP = 0, MOST_ROWS = 2, BLOCKS_AT_ONCE = 1;
struct Activations { int8_t v[4]; };
struct Weights { int8_t v[64]; };
struct Sums { int32_t v[16]; };
inline Activations load_activations(const int8_t* x) { return {{x[0], x[1], x[2], x[3]}}; }
inline Weights load_weights(const int8_t* x) {
    Weights weights;
    memcpy(weights.v, x, 64);
    return weights;
}
inline Sums start(const int32_t*) { return {{}}; }
inline void add_products(Sums& sums, const Activations& a, const Weights& w) {
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 4; ++j) sums.v[i] += a.v[j] * w.v[4 * i + j];
}
inline Lanes as_floats(const Sums& sums) {
    return each([&](int i) { return (float)sums.v[i]; });
}

}  // namespace

#include "vector_rest.h"
