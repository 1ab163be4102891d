#include "linear.h"

#include <cmath>
#include <cstring>

namespace transduce {

namespace {

constexpr Index MOST_INPUTS = 1 << 16;  // 65,536 products of two int8 numbers fit into 32 bits

float largest_magnitude(const float* values, Index count) {
    float largest = 0.0f;
    for (Index i = 0; i < count; ++i) {
        const float magnitude = std::fabs(values[i]);
        if (!(magnitude <= largest)) largest = magnitude;  // also if it is NaN
        if (std::isnan(largest)) return largest;
    }
    return largest;
}

}  // namespace

void Linear::allocate(Precision precision, Index outputs, Index inputs) {
    if (inputs > MOST_INPUTS) throw std::invalid_argument("a linear map has more than 65,536 inputs");
    precision_ = precision;
    outputs_ = padded(outputs);
    inputs_ = inputs;
    const Index weights = outputs_ * inputs_;
    bias_ = Buffer<float>(outputs_);
    if (precision == Precision::float32) {
        floats_ = Buffer<float>(weights);
        return;
    }
    bytes_ = Buffer<int8_t>(weights);
    scales_ = Buffer<float>(outputs_);
    correction_ = Buffer<int32_t>(outputs_);
}

Index Linear::place(Index output, Index input) const {
    const Index block = output / LANES, lane = output % LANES;
    if (precision_ == Precision::float32) return (block * inputs_ + input) * LANES + lane;
    return (block * (inputs_ / GROUP) + input / GROUP) * PADDING + lane * GROUP + input % GROUP;
}

Linear::Linear(Precision precision, const std::vector<OutputSource>& sources, const std::vector<Index>& columns, Index inputs,
               float padding_bias) {
    allocate(precision, static_cast<Index>(sources.size()), inputs);
    for (Index output = 0; output < outputs_; ++output) bias_[output] = padding_bias;
    Index output = 0;
    for (const OutputSource& source : sources) {
        bias_[output] = source.bias * source.factor;
        if (source.weight.rows) set_row(output, source, columns);
        ++output;
    }
}

void Linear::set_row(Index output, const OutputSource& source, const std::vector<Index>& columns) {
    const Tensor& tensor = source.weight;
    const float* floats = tensor.floats ? tensor.floats + source.row * tensor.columns : nullptr;
    const int8_t* bytes = tensor.bytes ? tensor.bytes + source.row * tensor.columns : nullptr;
    if (precision_ == Precision::float32) {
        float* row = floats_.data() + place(output, 0);
        for (Index c = 0; c < tensor.columns; ++c)
            row[columns[c] * LANES] = (floats ? floats[c] : bytes[c] * tensor.scales[source.row]) * source.factor;
        return;
    }
    const float scale = floats ? largest_magnitude(floats, tensor.columns) / 127.0f : tensor.scales[source.row];
    const bool is_usable = std::isfinite(scale) && scale > 1e-38f;
    int8_t* row = bytes_.data() + place(output, 0);
    int32_t total = 0;
    for (Index c = 0; c < tensor.columns; ++c) {
        // Adding 1.5 · 2^23 rounds to the nearest integer.
        const int value = !floats ? bytes[c] : is_usable ? static_cast<int>(floats[c] / scale + 12582912.0f - 12582912.0f) : 0;
        if (value < -127) throw std::invalid_argument("an int8 weight is -128; its range is -127 to 127");
        row[columns[c] / GROUP * PADDING + columns[c] % GROUP] = static_cast<int8_t>(value);
        total += value;
    }
    scales_[output] = std::isfinite(scale) ? scale * source.factor : NAN;  // makes every result NaN
    correction_[output] = -128 * total;
}

void Linear::apply(const Kernels& kernels, const Input& input, const Output& output) const {
    apply_blocks(kernels, input, 0, blocks(), output);
}

void Linear::apply_blocks(const Kernels& kernels, const Input& input, Index first, Index last, const Output& output) const {
    if (precision_ == Precision::float32)
        kernels.multiply_float({floats_.data(), bias_.data(), inputs_}, input.floats, first, last, output);
    else
        kernels.multiply_int8({bytes_.data(), correction_.data(), scales_.data(), bias_.data(), inputs_}, input.bytes, first,
                              last, output);
}

void Linear::read_row(Index output, float factor, float* row) const {
    if (precision_ == Precision::float32) {
        const float* weights = floats_.data() + place(output, 0);
        for (Index i = 0; i < inputs_; ++i) row[i] = weights[i * LANES] * factor;
        return;
    }
    const int8_t* weights = bytes_.data() + place(output, 0);
    const float scale = scales_[output] * factor;
    for (Index i = 0; i < inputs_; i += GROUP, weights += PADDING)
        for (Index j = 0; j < GROUP; ++j) row[i + j] = static_cast<float>(weights[j]) * scale;
}

Linear Linear::among(const int32_t* chosen, Index count) const {
    Linear some;
    some.allocate(precision_, count, inputs_);
    for (Index output = 0; output < some.outputs_; ++output) {
        const Index from = output < count ? chosen[output] : 0;
        some.bias_[output] = output < count ? bias_[from] : -INFINITY;
        if (output >= count) continue;
        const Index source = place(chosen[output], 0), target = some.place(output, 0);
        if (precision_ == Precision::float32) {
            for (Index i = 0; i < inputs_; ++i)
                some.floats_[target + i * LANES] = floats_[source + i * LANES];
            continue;
        }
        some.scales_[output] = scales_[from];
        some.correction_[output] = correction_[from];
        for (Index group = 0; group < inputs_ / GROUP; ++group)
            std::memcpy(&some.bytes_[target + group * PADDING], &bytes_[source + group * PADDING], GROUP);
    }
    return some;
}

}  // namespace transduce
