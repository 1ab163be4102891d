// Sixteen float lanes in one AVX-512 register, and int8 products by VNNI.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace {

struct Lanes { __m512 v; };

inline Lanes load(const float* x) { return {_mm512_loadu_ps(x)}; }
inline void store(float* x, Lanes a) { _mm512_storeu_ps(x, a.v); }
inline Lanes all(float x) { return {_mm512_set1_ps(x)}; }
inline Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Lanes larger(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }  // b where either is NaN
inline Lanes where_less(Lanes a, Lanes b, Lanes then, Lanes otherwise) {
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), otherwise.v, then.v)};
}
inline unsigned greater_bits(Lanes a, Lanes b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }
inline Lanes larger_magnitude(Lanes a, Lanes b) {  // compares bits without sign, so that NaN is the largest
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(b.v), _mm512_set1_epi32(0x7fffffff));
    return {_mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a.v), bits))};
}
inline Lanes times_power_of_two(Lanes a, Lanes shifted) {
    const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.v), exponent))};
}
inline void store_bytes(int8_t* x, Lanes a, int flip) {
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v));
    _mm_storeu_si128((__m128i*)x, _mm_xor_si128(bytes, _mm_set1_epi8((char)flip)));
}
inline Lanes of_bfloat16(__m256i bits) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
inline Lanes of_int16(__m256i numbers) { return {_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(numbers))}; }
inline __m256i bfloat16(Lanes a) {  // rounds to the nearest, ties to even
    const __m512i bits = _mm512_castps_si512(a.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
inline Lanes load_bfloat16(const uint16_t* x) { return of_bfloat16(_mm256_loadu_si256((const __m256i*)x)); }
inline Lanes load_int16(const int16_t* x) { return of_int16(_mm256_loadu_si256((const __m256i*)x)); }
inline void store_bfloat16(uint16_t* x, Lanes a) { _mm256_storeu_si256((__m256i*)x, bfloat16(a)); }

// The first `count` (1 to 15) numbers of a row, zeros in the other lanes.
inline __mmask16 first(long count) { return (__mmask16)((1u << count) - 1); }
inline Lanes load_rest(const float* x, long count) { return {_mm512_maskz_loadu_ps(first(count), x)}; }
inline Lanes load_rest(const uint16_t* x, long count) { return of_bfloat16(_mm256_maskz_loadu_epi16(first(count), x)); }
inline Lanes load_rest(const int16_t* x, long count) { return of_int16(_mm256_maskz_loadu_epi16(first(count), x)); }
// Writes exactly the first `count` numbers: a masked store would delay reads of the next row, which it overlaps.
inline void store_exactly(uint16_t* x, __m256i bits, long count) {
    __m128i left = _mm256_castsi256_si128(bits);
    if (count & 8) _mm_storeu_si128((__m128i*)x, left), x += 8, left = _mm256_extracti128_si256(bits, 1);
    if (count & 4) _mm_storel_epi64((__m128i*)x, left), x += 4, left = _mm_srli_si128(left, 8);
    if (count & 2) _mm_storeu_si32(x, left), x += 2, left = _mm_srli_si128(left, 4);
    if (count & 1) _mm_storeu_si16(x, left);
}
inline void store_rest(float* x, Lanes a, long count) { _mm512_mask_storeu_ps(x, first(count), a.v); }
inline void store_rest(uint16_t* x, Lanes a, long count) { store_exactly(x, bfloat16(a), count); }
inline void halves(Lanes a, __m256& low, __m256& high) {
    low = _mm512_castps512_ps256(a.v);
    high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
}
inline float sum(Lanes a) {
    __m256 low, high;
    halves(a, low, high);
    const __m256 eight = _mm256_add_ps(low, high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
inline float largest(Lanes a) {
    __m256 low, high;
    halves(a, low, high);
    const __m256 eight = _mm256_max_ps(low, high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

// Products of 4 activations with 4 weights of each of 16 outputs. VNNI multiplies unsigned by signed bytes: 128 is
// added to stored activations (FLIP), and sums begin at -128 Σ w (`correction`).
constexpr int FLIP = 0x80, MOST_ROWS = 6, BLOCKS_AT_ONCE = 4;
using Activations = __m512i;
using Weights = __m512i;
using Sums = __m512i;
inline Activations load_activations(const int8_t* x) {
    int four;
    memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
}
inline Weights load_weights(const int8_t* x) { return _mm512_loadu_si512(x); }
inline Sums start(const int32_t* correction) { return _mm512_loadu_si512(correction); }
inline void add_products(Sums& sums, const Activations& a, const Weights& w) {
#ifdef __GNUC__  // with the intrinsic GCC 12 copies every sum to the stack
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(w));
#else
    sums = _mm512_dpbusd_epi32(sums, a, w);
#endif
}
inline Lanes as_floats(const Sums& sums) { return {_mm512_cvtepi32_ps(sums)}; }

}  // namespace
