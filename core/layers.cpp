#include "layers.h"

#include <numeric>

namespace transduce {

namespace {

std::vector<Index> in_order(Index count) {
    std::vector<Index> columns(static_cast<size_t>(count));
    std::iota(columns.begin(), columns.end(), 0);
    return columns;
}

// The inputs of W_O: each head's values in its padded place.
std::vector<Index> by_head(Index heads, Index width, Index room) {
    std::vector<Index> columns;
    for (Index head = 0; head < heads; ++head)
        for (Index i = 0; i < width; ++i) columns.push_back(head * room + i);
    return columns;
}

// The outputs of W_Q, W_K or W_V: each head in its padded place, then zeros up to the padded width of all heads.
void append_heads(std::vector<OutputSource>& outputs, const Tensor& weight, const std::vector<float>& bias, float factor,
                  const HeadWidths& widths, bool is_value) {
    const Index width = is_value ? widths.d_v : widths.d_k, room = is_value ? widths.value() : widths.key();
    const size_t end = outputs.size() + static_cast<size_t>(is_value ? widths.values() : widths.keys());
    for (Index head = 0; head < widths.heads; ++head)
        for (Index i = 0; i < room; ++i) {
            const Index row = head * width + i;
            outputs.push_back(i < width ? OutputSource{weight, row, bias.empty() ? 0.0f : bias[row], factor} : OutputSource{});
        }
    outputs.resize(end);
}

std::vector<OutputSource> rows_of(const Tensor& weight, const std::vector<float>& bias) {
    std::vector<OutputSource> outputs;
    for (Index row = 0; row < weight.rows; ++row) outputs.push_back({weight, row, bias.empty() ? 0.0f : bias[row], 1.0f});
    return outputs;
}

}  // namespace

LayerNorm::LayerNorm(const Config& config, WeightReader& weights, const std::string& name)
    : gain_(padded(config.d_model)),
      bias_(padded(config.d_model)),
      is_real_(padded(config.d_model)),
      width_(static_cast<float>(config.d_model)),
      epsilon_(config.norm_epsilon) {
    std::ranges::copy(weights.vector(name + ".weight", config.d_model), gain_.data());
    std::ranges::copy(weights.vector(name + ".bias", config.d_model), bias_.data());
    std::fill_n(is_real_.data(), config.d_model, 1.0f);
}

void LayerNorm::apply(const Kernels& kernels, const float* rows, Index count, float* normalized) const {
    kernels.normalize({gain_.data(), bias_.data(), is_real_.data(), width_, epsilon_}, rows, count, gain_.size(), normalized);
}

MultiHeadAttention::MultiHeadAttention(const Config& config, WeightReader& weights, const std::string& name,
                                       bool is_over_source)
    : widths{config.heads, config.d_k, config.d_v} {
    const auto append = [&](std::vector<OutputSource>& outputs, const char* part, float factor, bool is_value) {
        const std::string own = name + "." + part;
        const Index rows = config.heads * (is_value ? config.d_v : config.d_k);
        append_heads(outputs, weights.matrix(own + ".weight", rows, config.d_model),
                     config.attention_bias ? weights.vector(own + ".bias", rows) : std::vector<float>(), factor, widths, is_value);
    };
    std::vector<OutputSource> queries, memory;
    append(queries, "W_Q", config.query_factor, false);
    append(is_over_source ? memory : queries, "W_K", 1.0f, false);
    append(is_over_source ? memory : queries, "W_V", 1.0f, true);
    const Index width = padded(config.d_model), values = config.heads * config.d_v;
    query = Linear(config.precision, queries, in_order(config.d_model), width);
    if (is_over_source) keys_values = Linear(config.precision, memory, in_order(config.d_model), width);
    const Tensor mixing = weights.matrix(name + ".W_O.weight", config.d_model, values);
    const auto bias = config.attention_bias ? weights.vector(name + ".W_O.bias", config.d_model) : std::vector<float>();
    output = Linear(config.precision, rows_of(mixing, bias), by_head(config.heads, config.d_v, widths.value()),
                    widths.values());
}

SSRU::SSRU(const Config& config, WeightReader& weights, const std::string& name) {
    std::vector<OutputSource> outputs = rows_of(weights.matrix(name + ".W_f.weight", config.d_model, config.d_model),
                                                weights.vector(name + ".W_f.bias", config.d_model));
    outputs.resize(static_cast<size_t>(padded(config.d_model)));
    for (const OutputSource& row : rows_of(weights.matrix(name + ".W.weight", config.d_model, config.d_model), {}))
        outputs.push_back(row);
    gate_and_candidate = Linear(config.precision, outputs, in_order(config.d_model), padded(config.d_model));
}

FeedForward::FeedForward(const Config& config, WeightReader& weights, const std::string& name)
    : inner(config.precision,
            rows_of(weights.matrix(name + ".W_1.weight", config.d_ff, config.d_model),
                    weights.vector(name + ".W_1.bias", config.d_ff)),
            in_order(config.d_model), padded(config.d_model)),
      outer(config.precision,
            rows_of(weights.matrix(name + ".W_2.weight", config.d_model, config.d_ff),
                    weights.vector(name + ".W_2.bias", config.d_model)),
            in_order(config.d_ff), padded(config.d_ff)) {}

Layer::Layer(const Config& config, WeightReader& weights, const std::string& name, bool is_decoder)
    : feed_forward(config, weights, name + ".feed_forward"),
      self_attention_norm(config, weights, name + ".self_attention_residual.norm"),
      feed_forward_norm(config, weights, name + ".feed_forward_residual.norm") {
    if (is_decoder && config.is_recurrent) ssru = SSRU(config, weights, name + ".ssru");
    else self_attention = MultiHeadAttention(config, weights, name + ".self_attention", false);
    if (!is_decoder || !config.has_source) return;
    cross_attention = MultiHeadAttention(config, weights, name + ".cross_attention", true);
    cross_attention_norm = LayerNorm(config, weights, name + ".cross_attention_residual.norm");
}

Sublayers::Sublayers(const Kernels& kernels, const Config& config, Workspace& space, Index count)
    : kernels_(kernels), config_(config), space_(space), count_(count), width_(padded(config.d_model)) {
    space.normalized.reserve(count * width_);
    space.inner.reserve(count * padded(config.d_ff));
}

Input Sublayers::enter(const LayerNorm& norm) {
    if (!config_.is_pre_norm) return input(space_.x.data(), width_);
    norm.apply(kernels_, space_.x.data(), count_, space_.normalized.data());
    return input(space_.normalized.data(), width_);
}

void Sublayers::project(const Linear& linear, const Input& input, float* rows, Index stride) {
    linear.apply(kernels_, input, {rows, stride, false});
}

void Sublayers::leave(const Linear& linear, const Input& input, const LayerNorm& norm) {
    linear.apply(kernels_, input, {space_.x.data(), width_, true});
    if (!config_.is_pre_norm) normalize(norm);
}

void Sublayers::leave_with(const float* rows, const LayerNorm& norm) {
    for (Index i = 0; i < count_ * width_; ++i) space_.x[i] += rows[i];
    if (!config_.is_pre_norm) normalize(norm);
}

void Sublayers::feed_forward(const FeedForward& weights, const LayerNorm& norm) {
    const Index width = padded(config_.d_ff);
    project(weights.inner, enter(norm), space_.inner.data(), width);
    kernels_.activate(config_.activation, space_.inner.data(), count_ * width);
    leave(weights.outer, input(space_.inner.data(), width), norm);
}

}  // namespace transduce
