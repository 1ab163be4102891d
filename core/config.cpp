#include "config.h"

#include <stdexcept>
#include <utility>

namespace transduce {

namespace {

template <class Value, size_t COUNT>
Value named(const char* option, const std::string& name, const std::pair<const char*, Value> (&values)[COUNT]) {
    for (const auto& [known, value] : values)
        if (name == known) return value;
    throw std::invalid_argument(std::string("there is no ") + option + " " + name);
}

void require(const char* name, Index value, Index least, Index most) {
    if (value < least || value > most)
        throw std::invalid_argument(std::string(name) + " = " + std::to_string(value) + " is not between " +
                                    std::to_string(least) + " and " + std::to_string(most));
}

}  // namespace

Positions positions_named(const std::string& name) {
    return named<Positions>("kind of positions", name, {{"sinusoidal", Positions::sinusoidal},
                                                        {"sinusoidal_halves", Positions::sinusoidal_halves},
                                                        {"concatenated", Positions::concatenated},
                                                        {"learned", Positions::learned},
                                                        {"none", Positions::none}});
}

Activation activation_named(const std::string& name) {
    return named<Activation>("activation", name, {{"relu", Activation::relu},
                                                  {"gelu", Activation::gelu},
                                                  {"gelu_tanh", Activation::gelu_tanh},
                                                  {"gelu_sigmoid", Activation::gelu_sigmoid},
                                                  {"silu", Activation::silu}});
}

Precision precision_named(const std::string& name) {
    return named<Precision>("precision", name, {{"int8", Precision::int8}, {"float32", Precision::float32}});
}

void require_possible(const Config& config) {
    constexpr Index most = 1 << 16;
    require("vocabulary_size", config.vocabulary_size, 1, 1 << 24);
    require("source_vocabulary_size", config.source_vocabulary_size, config.has_source, 1 << 24);
    require("d_model", config.d_model, 1, most);
    require("d_ff", config.d_ff, 1, most);
    require("heads", config.heads, 1, most);
    require("d_k", config.d_k, 1, most);
    require("d_v", config.d_v, 1, most);
    require("encoder_layers", config.encoder_layers, config.has_source, 1 << 10);
    require("decoder_layers", config.decoder_layers, 1, 1 << 10);
    require("first_position", config.first_position, 0, 1 << 24);
    require("learned_positions", config.learned_positions, config.positions == Positions::learned, 1 << 24);
    require("padding", config.padding, 0, 1 << 24);
    require("start", config.start, 0, config.vocabulary_size - 1);
}

}  // namespace transduce
