// The operations between the matrix products of bf16 training; backpropagation/fused_kernels.py calls them.
//
// torch makes a pass over memory for every operation. A kernel here reads a row once, computes in float32 and writes
// the row once. Sums run over rows in order and over a row in 16 lanes, so all instruction sets give the same bits.
#pragma once
#include "kernels.h"

namespace transduce {

using BFloat16 = uint16_t;  // the upper half of a float32

// Replaces logits z by softmax(z), plus `extra` at the label; rows after the last label become 0. The three statistics
// of a row are the logit of its label, its highest logit, and Σ e^(z - highest).
struct LabelGradients {
    BFloat16* logits;
    const int64_t* label;
    float* statistics;
    float* room;  // `width` numbers, rounded up to a multiple of 16
    Index labels, rows, width;
    float extra;
};

// Replaces scores (sentence, head, query, key) by softmax(scale · scores) over visible keys; rows of padding become 0.
struct AttentionWeights {
    BFloat16* scores;
    const int64_t* keys_of;     // the number of keys of each sentence
    const int64_t* queries_of;  // and of queries
    float* room;                // `keys` numbers, rounded up to a multiple of 16
    Index sentences, heads, queries, keys;
    bool is_causal;
    float scale;
};

// z = x + Dropout(branch), y = LayerNorm(z). Dropout keeps elements whose random word is at least `threshold`.
struct AddAndNorm {
    const BFloat16* x;
    const BFloat16* branch;
    const int16_t* words;
    const float* gain;
    const float* bias;
    BFloat16* sums;     // z
    BFloat16* y;
    float* statistics;  // mean and 1 / standard deviation of each row
    Index rows, width;
    float threshold, scale, epsilon;
};

// The gradient of AddAndNorm: of z and of the branch; those of gain and bias are added to `to_gain` and `to_bias`.
struct NormGradient {
    const BFloat16* gradient;
    const BFloat16* sums;
    const int16_t* words;
    const float* gain;
    const float* statistics;
    BFloat16* to_sum;
    BFloat16* to_branch;
    float* to_gain;
    float* to_bias;
    Index rows, width;
    float threshold, scale;
};

struct TrainingKernels {
    void (*label_gradients)(const LabelGradients&);
    void (*attention_weights)(const AttentionWeights&);
    // Replaces ∂A by α ∂S = α A ∘ (∂A - Σ_k A ∘ ∂A).
    void (*attention_gradient)(BFloat16* gradient, const BFloat16* weights, Index rows, Index keys, float scale);
    void (*add_and_norm)(const AddAndNorm&);
    void (*norm_gradient)(const NormGradient&);
    void (*add_to)(float* total, const BFloat16* addend, Index count);
    void (*add_sum_of_rows)(const BFloat16* matrix, float* total, Index rows, Index width);
    // Zeros a gradient where the output of max(0, ·) is 0, and adds its sum over rows to `total`.
    void (*relu_gradient)(BFloat16* gradient, const BFloat16* output, float* total, Index rows, Index width);
};

}  // namespace transduce
