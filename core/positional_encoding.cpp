#include "positional_encoding.h"

#include <algorithm>
#include <cmath>

namespace transduce {

void write_position(const Config& config, Index position, float* vector) {
    const Index half = config.d_model / 2;
    std::fill_n(vector, padded(config.d_model), 0.0f);
    if (config.positions == Positions::none) return;
    for (Index i = 0; i < half; ++i) {
        const double exponent = config.positions == Positions::concatenated
                                    ? static_cast<double>(i) / static_cast<double>(std::max<Index>(half - 1, 1))
                                    : static_cast<double>(2 * i) / static_cast<double>(config.d_model);
        const double angle = static_cast<double>(config.first_position + position) / std::pow(10000.0, exponent);
        const bool alternates = config.positions == Positions::sinusoidal;
        vector[alternates ? 2 * i : i] = static_cast<float>(std::sin(angle));
        vector[alternates ? 2 * i + 1 : half + i] = static_cast<float>(std::cos(angle));
    }
}

}  // namespace transduce
