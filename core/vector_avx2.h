// Sixteen float lanes in two AVX2 registers, and int8 products by AVX-VNNI if compiler flags enable it, else by AVX2.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace {

struct Lanes { __m256 low, high; };

inline Lanes load(const float* x) { return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)}; }
inline void store(float* x, Lanes a) { _mm256_storeu_ps(x, a.low), _mm256_storeu_ps(x + 8, a.high); }
inline Lanes all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Lanes operator+(Lanes a, Lanes b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Lanes larger(Lanes a, Lanes b) {  // b where either is NaN
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Lanes where_less(Lanes a, Lanes b, Lanes then, Lanes otherwise) {
    return {_mm256_blendv_ps(otherwise.low, then.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
            _mm256_blendv_ps(otherwise.high, then.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
}
inline unsigned greater_bits(Lanes a, Lanes b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ)) |
           (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ)) << 8;
}
inline __m256 larger_magnitude(__m256 a, __m256 b) {
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(b), _mm256_set1_epi32(0x7fffffff));
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), bits));
}
inline Lanes larger_magnitude(Lanes a, Lanes b) {  // compares bits without sign, so that NaN is the largest
    return {larger_magnitude(a.low, b.low), larger_magnitude(a.high, b.high)};
}
inline __m256 times_power_of_two(__m256 a, __m256 shifted) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), exponent));
}
inline Lanes times_power_of_two(Lanes a, Lanes shifted) {
    return {times_power_of_two(a.low, shifted.low), times_power_of_two(a.high, shifted.high)};
}
inline void store_bytes(int8_t* x, Lanes a, int flip) {
    const __m256i pairs = _mm256_packs_epi32(_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high));
    const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128((__m128i*)x, _mm_xor_si128(bytes, _mm_set1_epi8((char)flip)));
}
inline __m256 load_bfloat16_half(const uint16_t* x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)x)), 16));
}
inline Lanes load_bfloat16(const uint16_t* x) { return {load_bfloat16_half(x), load_bfloat16_half(x + 8)}; }
inline __m256i bfloat16_bits(__m256 a) {  // rounds to the nearest, ties to even
    const __m256i bits = _mm256_castps_si256(a), upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
}
inline void store_bfloat16(uint16_t* x, Lanes a) {
    const __m256i pairs = _mm256_packus_epi32(bfloat16_bits(a.low), bfloat16_bits(a.high));
    _mm256_storeu_si256((__m256i*)x, _mm256_permute4x64_epi64(pairs, 0xd8));
}
inline __m256 load_int16_half(const int16_t* x) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i*)x)));
}
inline Lanes load_int16(const int16_t* x) { return {load_int16_half(x), load_int16_half(x + 8)}; }
inline float sum(Lanes a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
inline float largest(Lanes a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

struct Weights { __m256i low, high; };
struct Sums { __m256i low, high; };
inline Weights load_weights(const int8_t* x) {
    return {_mm256_loadu_si256((const __m256i*)x), _mm256_loadu_si256((const __m256i*)(x + 32))};
}
inline __m256i four_activations(const int8_t* x) {
    int four;
    memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
}
inline Lanes as_floats(const Sums& sums) { return {_mm256_cvtepi32_ps(sums.low), _mm256_cvtepi32_ps(sums.high)}; }

#ifdef __AVXVNNI__
constexpr int FLIP = 0x80, MOST_ROWS = 4, BLOCKS_AT_ONCE = 1;  // as in vector_avx512.h
using Activations = __m256i;
inline Activations load_activations(const int8_t* x) { return four_activations(x); }
inline Sums start(const int32_t* correction) {
    return {_mm256_loadu_si256((const __m256i*)correction), _mm256_loadu_si256((const __m256i*)(correction + 8))};
}
inline void add_products(Sums& sums, const Activations& a, const Weights& w) {
    sums.low = _mm256_dpbusd_avx_epi32(sums.low, a, w.low);
    sums.high = _mm256_dpbusd_avx_epi32(sums.high, a, w.high);
}
#else
// maddubs adds two products of an unsigned and a signed byte in 16 bits. With |a| and w · sign(a), both at most 127,
// the sum is at most 2 · 127², which 16 bits hold; it is widened at once, so all sums are exact.
constexpr int FLIP = 0, MOST_ROWS = 4, BLOCKS_AT_ONCE = 1;
struct Activations { __m256i value, magnitude; };
inline Activations load_activations(const int8_t* x) {
    const __m256i value = four_activations(x);
    return {value, _mm256_abs_epi8(value)};
}
inline Sums start(const int32_t*) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline void add_products(Sums& sums, const Activations& a, const Weights& w) {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i low = _mm256_maddubs_epi16(a.magnitude, _mm256_sign_epi8(w.low, a.value));
    const __m256i high = _mm256_maddubs_epi16(a.magnitude, _mm256_sign_epi8(w.high, a.value));
    const __m256i wide_low = _mm256_madd_epi16(low, ones), wide_high = _mm256_madd_epi16(high, ones);
#ifdef __GNUC__  // with the intrinsic GCC 12 copies every sum
    __asm__("vpaddd %1, %0, %0" : "+x"(sums.low) : "x"(wide_low));
    __asm__("vpaddd %1, %0, %0" : "+x"(sums.high) : "x"(wide_high));
#else
    sums.low = _mm256_add_epi32(sums.low, wide_low);
    sums.high = _mm256_add_epi32(sums.high, wide_high);
#endif
}
#endif

}  // namespace

#include "vector_rest.h"
