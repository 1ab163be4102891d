// The output layer and the softmax, section 3.4 of "Attention Is All You Need": log p = h Eᵀ + b - log Σ exp(h Eᵀ + b).
//
// Logits are computed CHUNK outputs at a time. A search does not store them all: each chunk updates Σ exp
// and the best tokens.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernels.h"
#include "linear.h"

namespace transduce {

constexpr Index CHUNK = 512;  // outputs; 128 rows of them fit into a core's cache

struct NotNumbers : std::runtime_error {
    NotNumbers() : std::runtime_error("the model's probabilities are not numbers") {}
};

// Computes log Σ exp of a row, one chunk after the other.
class LogSum {
    float largest_ = -3.4028235e38f, sum_ = 0.0f;

public:
    void add(const Kernels& kernels, const float* logits, Index width);
    float value() const;  // throws NotNumbers
};

// The best next tokens of one row.
struct BestTokens {
    std::vector<float> logits;     // largest first; -infinity for none
    std::vector<int32_t> tokens;
    float log_sum = 0.0f;
};

// The tokens that may follow a row: all but the forbidden ones, or only the forced one.
struct Allowed {
    const std::vector<int32_t>* forbidden;
    int32_t forced = -1;
};

// Replaces the logits of each row by log-probabilities; rows are `stride` apart.
void log_softmax(const Kernels& kernels, float* logits, Index count, Index stride);

// Finds the `count` best tokens of each row.
void find_best(const Kernels& kernels, const Linear& output, const Input& rows, const Allowed* allowed, Index count,
               Buffer<float>& room, BestTokens* best);

}  // namespace transduce
