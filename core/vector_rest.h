// The first `count` (1 to 15) numbers of a row, for instruction sets without masked loads; zeros stand in the other lanes.
#pragma once
#include <stdint.h>
#include <string.h>

namespace {

template <class Number>
struct RestOf {
    Number own[16] = {};
    RestOf() = default;
    RestOf(const Number* x, long count) { memcpy(own, x, (size_t)count * sizeof(Number)); }
    void put(Number* x, long count) const { memcpy(x, own, (size_t)count * sizeof(Number)); }
};

inline Lanes load_rest(const float* x, long count) { return load(RestOf<float>(x, count).own); }
inline Lanes load_rest(const uint16_t* x, long count) { return load_bfloat16(RestOf<uint16_t>(x, count).own); }
inline Lanes load_rest(const int16_t* x, long count) { return load_int16(RestOf<int16_t>(x, count).own); }
inline void store_rest(float* x, Lanes a, long count) {
    RestOf<float> rest;
    store(rest.own, a);
    rest.put(x, count);
}
inline void store_rest(uint16_t* x, Lanes a, long count) {
    RestOf<uint16_t> rest;
    store_bfloat16(rest.own, a);
    rest.put(x, count);
}

}  // namespace
