// Buffers for the rows that pass through the layers: one row per source token, or per beam.
#pragma once
#include <cstdint>

#include "buffer.h"
#include "linear.h"

namespace transduce {

struct Workspace {
    Buffer<float> x;           // the residual stream, padded d_model wide
    Buffer<float> normalized;  // what a sub-layer reads under pre-norm
    Buffer<float> projected;   // queries, keys and values
    Buffer<float> mixed;       // concatenated heads
    Buffer<float> inner;       // of the feed-forward network
    Buffer<float> weights;     // attention weights of one row
    Buffer<float> position;    // one position's vector
    Buffer<float> scales;
    Buffer<int8_t> bytes;

    // Returns rows as the input of a linear map, quantised if it is int8; valid until the next call.
    Input input(const Kernels& kernels, Precision precision, const float* rows, Index count, Index width) {
        Input found{{rows, count, width}, {nullptr, nullptr, count, width}};
        if (precision == Precision::int8) {
            found.bytes.values = bytes.reserve(count * width);
            found.bytes.scales = scales.reserve(count);
            kernels.quantize(rows, count, width, bytes.data(), scales.data());
        }
        return found;
    }
};

}  // namespace transduce
