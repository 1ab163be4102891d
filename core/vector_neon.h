// Sixteen float lanes in four NEON registers, and int8 products by SDOT if compiler flags enable it.
#pragma once
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

namespace {

struct Lanes { float32x4_t v[4]; };

template <class Function>
inline Lanes each(Function function) {
    return {{function(0), function(1), function(2), function(3)}};
}
inline Lanes load(const float* x) { return each([=](int i) { return vld1q_f32(x + 4 * i); }); }
inline void store(float* x, Lanes a) {
    for (int i = 0; i < 4; ++i) vst1q_f32(x + 4 * i, a.v[i]);
}
inline Lanes all(float x) { return each([=](int) { return vdupq_n_f32(x); }); }
inline Lanes operator+(Lanes a, Lanes b) { return each([=](int i) { return vaddq_f32(a.v[i], b.v[i]); }); }
inline Lanes operator-(Lanes a, Lanes b) { return each([=](int i) { return vsubq_f32(a.v[i], b.v[i]); }); }
inline Lanes operator*(Lanes a, Lanes b) { return each([=](int i) { return vmulq_f32(a.v[i], b.v[i]); }); }
inline Lanes operator/(Lanes a, Lanes b) { return each([=](int i) { return vdivq_f32(a.v[i], b.v[i]); }); }
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
    return each([=](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
}
inline Lanes where_less(Lanes a, Lanes b, Lanes then, Lanes otherwise) {
    return each([=](int i) { return vbslq_f32(vcltq_f32(a.v[i], b.v[i]), then.v[i], otherwise.v[i]); });
}
inline Lanes larger(Lanes a, Lanes b) {  // b where either is NaN
    return each([=](int i) { return vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
inline unsigned greater_bits(Lanes a, Lanes b) {
    unsigned bits = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32x4_t place = {1, 2, 4, 8};
        bits |= vaddvq_u32(vandq_u32(vcgtq_f32(a.v[i], b.v[i]), place)) << (4 * i);
    }
    return bits;
}
inline Lanes larger_magnitude(Lanes a, Lanes b) {  // compares bits without sign, so that NaN is the largest
    return each([=](int i) {
        const uint32x4_t bits = vandq_u32(vreinterpretq_u32_f32(b.v[i]), vdupq_n_u32(0x7fffffff));
        return vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(a.v[i]), bits));
    });
}
inline Lanes times_power_of_two(Lanes a, Lanes shifted) {
    return each([=](int i) {
        const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted.v[i]), 23);
        return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(a.v[i]), exponent));
    });
}
inline void store_bytes(int8_t* x, Lanes a, int) {
    const int16x8_t low = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a.v[0])), vmovn_s32(vcvtnq_s32_f32(a.v[1])));
    const int16x8_t high = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a.v[2])), vmovn_s32(vcvtnq_s32_f32(a.v[3])));
    vst1q_s8(x, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
inline Lanes load_bfloat16(const uint16_t* x) {
    return each([=](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(x + 4 * i), 16)); });
}
inline void store_bfloat16(uint16_t* x, Lanes a) {  // rounds to the nearest, ties to even
    for (int i = 0; i < 4; ++i) {
        const uint32x4_t bits = vreinterpretq_u32_f32(a.v[i]);
        const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
        vst1_u16(x + 4 * i, vshrn_n_u32(vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16));
    }
}
inline Lanes load_int16(const int16_t* x) {
    return each([=](int i) { return vcvtq_f32_s32(vmovl_s16(vld1_s16(x + 4 * i))); });
}
inline float sum(Lanes a) {
    const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float largest(Lanes a) {
    float found[16];
    store(found, a);
    float best = found[0];
    for (int i = 1; i < 16; ++i) best = best > found[i] ? best : found[i];
    return best;
}

constexpr int FLIP = 0, MOST_ROWS = 4, BLOCKS_AT_ONCE = 1;
using Activations = int8x16_t;
struct Weights { int8x16_t v[4]; };
inline Activations load_activations(const int8_t* x) {
    int four;
    memcpy(&four, x, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
inline Weights load_weights(const int8_t* x) {
    return {{vld1q_s8(x), vld1q_s8(x + 16), vld1q_s8(x + 32), vld1q_s8(x + 48)}};
}
#ifdef __ARM_FEATURE_DOTPROD
struct Sums { int32x4_t v[4]; };
inline Sums start(const int32_t*) {
    return {{vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)}};
}
inline void add_products(Sums& sums, const Activations& a, const Weights& w) {
    for (int i = 0; i < 4; ++i) sums.v[i] = vdotq_s32(sums.v[i], w.v[i], a);
}
inline Lanes as_floats(const Sums& sums) {
    return each([&](int i) { return vcvtq_f32_s32(sums.v[i]); });
}
#else
struct Sums { int32x4_t v[8]; };  // two numbers for each output: its products 0 and 1, and its products 2 and 3
inline Sums start(const int32_t*) {
    const int32x4_t zero = vdupq_n_s32(0);
    return {{zero, zero, zero, zero, zero, zero, zero, zero}};
}
inline void add_products(Sums& sums, const Activations& a, const Weights& w) {
    for (int i = 0; i < 4; ++i) {
        sums.v[2 * i] = vpadalq_s16(sums.v[2 * i], vmull_s8(vget_low_s8(w.v[i]), vget_low_s8(a)));
        sums.v[2 * i + 1] = vpadalq_s16(sums.v[2 * i + 1], vmull_s8(vget_high_s8(w.v[i]), vget_high_s8(a)));
    }
}
inline Lanes as_floats(const Sums& sums) {
    return each([&](int i) { return vcvtq_f32_s32(vpaddq_s32(sums.v[2 * i], sums.v[2 * i + 1])); });
}
#endif

}  // namespace

#include "vector_rest.h"
