// Positional encoding, section 3.5 of "Attention Is All You Need":
//
//     PE(pos, 2i) = sin(pos / 10000^(2i / d_model))        PE(pos, 2i+1) = cos(pos / 10000^(2i / d_model))
//
// and the other forms of model/positional_encoding.py.
#pragma once
#include <vector>

#include "config.h"

namespace transduce {

// Writes the vector of a sentence's position (from 0), for the computed kinds; `vector` has the padded width.
void write_position(const Config& config, Index position, float* vector);

}  // namespace transduce
