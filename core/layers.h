// The sub-layers of sections 3.1 to 3.3 of "Attention Is All You Need" over packed rows:
//
//     LayerNorm(x + Sublayer(x))        MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O        FFN(x) = f(x W_1) W_2
//
// with `norm = "pre"`, x + Sublayer(LayerNorm(x)), and the SSRU of model/ssru.py as options.
#pragma once
#include <string>

#include "config.h"
#include "linear.h"
#include "workspace.h"

namespace transduce {

class LayerNorm {
    Buffer<float> gain_, bias_, is_real_;
    float width_ = 0.0f, epsilon_ = 0.0f;

public:
    LayerNorm() = default;
    LayerNorm(const Config& config, WeightReader& weights, const std::string& name);
    void apply(const Kernels& kernels, const float* rows, Index count, float* normalized) const;
};

// The widths of heads in memory. A head is padded to 16 lanes, all heads together to PADDING.
struct HeadWidths {
    Index heads, d_k, d_v;
    Index key() const { return (d_k + LANES - 1) / LANES * LANES; }
    Index value() const { return (d_v + LANES - 1) / LANES * LANES; }
    Index keys() const { return padded(heads * key()); }
    Index values() const { return padded(heads * value()); }
    // Of keys and values. The last lanes are unused: with a power of two, all rows would share a few cache sets.
    Index stride() const { return keys() + values() + LANES; }
};

struct MultiHeadAttention {
    HeadWidths widths{};
    Linear query;       // W_Q · query_factor; with self-attention also W_K and W_V
    Linear keys_values;  // W_K and W_V of the attention over the source
    Linear output;      // W_O

    MultiHeadAttention() = default;
    MultiHeadAttention(const Config& config, WeightReader& weights, const std::string& name, bool is_over_source);
};

struct SSRU {
    Linear gate_and_candidate;  // W_f, then W

    SSRU() = default;
    SSRU(const Config& config, WeightReader& weights, const std::string& name);
};

struct FeedForward {
    Linear inner, outer;  // W_1, W_2

    FeedForward() = default;
    FeedForward(const Config& config, WeightReader& weights, const std::string& name);
};

struct Layer {
    MultiHeadAttention self_attention, cross_attention;
    SSRU ssru;
    FeedForward feed_forward;
    LayerNorm self_attention_norm, cross_attention_norm, feed_forward_norm;

    Layer(const Config& config, WeightReader& weights, const std::string& name, bool is_decoder);
};

// Runs one stack's sub-layers on `count` rows in a workspace.
class Sublayers {
    const Kernels& kernels_;
    const Config& config_;
    Workspace& space_;
    Index count_, width_;

public:
    Sublayers(const Kernels& kernels, const Config& config, Workspace& space, Index count);

    // Returns the input of a sub-layer: the residual stream, normalised under pre-norm.
    Input enter(const LayerNorm& norm);
    Input input(const float* rows, Index width) { return space_.input(kernels_, config_.precision, rows, count_, width); }
    void project(const Linear& linear, const Input& input, float* rows, Index stride);
    // Adds the output of a sub-layer's last linear map to the residual stream; under post-norm, normalises the sum.
    void leave(const Linear& linear, const Input& input, const LayerNorm& norm);
    void leave_with(const float* rows, const LayerNorm& norm);
    void feed_forward(const FeedForward& weights, const LayerNorm& norm);
    void normalize(const LayerNorm& norm) { norm.apply(kernels_, space_.x.data(), count_, space_.x.data()); }
};

}  // namespace transduce
