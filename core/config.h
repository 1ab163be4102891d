// The options of the network that the core implements; model/config.py explains them.
#pragma once
#include <string>

#include "kernels.h"
#include "linear.h"

namespace transduce {

enum class Positions { sinusoidal, sinusoidal_halves, concatenated, learned, none };

struct Config {
    Index vocabulary_size = 0, source_vocabulary_size = 0;
    Index d_model = 0, d_ff = 0, heads = 0, d_k = 0, d_v = 0;
    Index encoder_layers = 0, decoder_layers = 0;
    bool has_source = true;  // false for a language model: no encoder and no attention over it
    bool is_pre_norm = false, has_final_norm = false, embedding_norm = false;
    bool is_recurrent = false;  // decoder_mixer = "ssru"
    bool attention_bias = false, output_bias = false, start_from_zeros = false;
    float norm_epsilon = 1e-6f, embedding_factor = 1.0f, query_factor = 1.0f;
    Positions positions = Positions::sinusoidal;
    Index first_position = 0, learned_positions = 0;
    Activation activation = Activation::relu;
    Index padding = 0, start = 2;  // token ids
    Precision precision = Precision::int8;
};

Positions positions_named(const std::string& name);
Activation activation_named(const std::string& name);
Precision precision_named(const std::string& name);
// Throws std::invalid_argument if a size is out of bounds.
void require_possible(const Config& config);

}  // namespace transduce
