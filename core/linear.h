// A linear map of rows,
//
//     y = W x + b
//
// in float32 or in int8. In int8 each row of W and each row x has a scale of its own, its largest magnitude / 127:
//
//     y_n = s_x s_n Σ_k q_k w_nk + b_n
#pragma once
#include <cstdint>
#include <vector>

#include "buffer.h"
#include "kernels.h"
#include "weights.h"

namespace transduce {

enum class Precision { int8, float32 };

// Rows that a linear map takes, with their quantised form in int8.
struct Input {
    FloatRows floats;
    Int8Rows bytes;
};

// The weights and bias of one output of a map; without a weight tensor, the weights are zeros.
struct OutputSource {
    Tensor weight;
    Index row = 0;
    float bias = 0.0f;
    float factor = 1.0f;  // of weight and bias
};

class Linear {
    Precision precision_ = Precision::int8;
    Index outputs_ = 0, inputs_ = 0;  // padded
    Buffer<int8_t> bytes_;
    Buffer<int32_t> correction_;
    Buffer<float> floats_, scales_, bias_;

    void allocate(Precision precision, Index outputs, Index inputs);
    void set_row(Index output, const OutputSource& source, const std::vector<Index>& columns);
    Index place(Index output, Index input) const;

public:
    Linear() = default;
    // Column c of the weights multiplies input `columns[c]`. Outputs beyond `sources` have zero weights and the
    // bias `padding_bias`.
    Linear(Precision precision, const std::vector<OutputSource>& sources, const std::vector<Index>& columns, Index inputs,
           float padding_bias = 0.0f);

    Index outputs() const { return outputs_; }
    Index blocks() const { return outputs_ / LANES; }
    Index inputs() const { return inputs_; }

    void apply(const Kernels& kernels, const Input& input, const Output& output) const;
    // Computes only the outputs from 16 · first to before 16 · last.
    void apply_blocks(const Kernels& kernels, const Input& input, Index first, Index last, const Output& output) const;
    // Writes row `output` of W times `factor`: an embedding.
    void read_row(Index output, float factor, float* row) const;
    // Returns the map to the `chosen` outputs, in this order; outputs that pad it have the bias -infinity.
    Linear among(const int32_t* chosen, Index count) const;
};

}  // namespace transduce
