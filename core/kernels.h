// The arithmetic that depends on the instruction set, as a table of functions; one table per instruction set.
//
// All tables give bit-identical results: integer sums are exact, float sums use 16 lanes and one tree (`sum`),
// products and sums are fused only where the code says so, and the exponential is our own. Widths are multiples of
// PADDING; values beyond the real width are zero.
#pragma once
#include <cstddef>
#include <cstdint>

namespace transduce {

using Index = std::ptrdiff_t;

constexpr Index LANES = 16;
constexpr Index GROUP = 4;     // int8 products that one instruction adds to an output
constexpr Index PADDING = 64;  // every width is padded to a multiple of this
constexpr Index padded(Index width) { return (width + PADDING - 1) / PADDING * PADDING; }

// W of y = W x + b, in the order: block of 16 outputs, group of 4 inputs, output, input.
struct Int8Matrix {
    const int8_t* weights;
    const int32_t* correction;  // -128 Σ w of each output; undoes the 128 added to activations
    const float* scales;        // of each output
    const float* bias;          // of each output
    Index inputs;                // padded
};

// The same in float32: block, input, output.
struct FloatMatrix {
    const float* weights;
    const float* bias;
    Index inputs;
};

struct Int8Rows {
    const int8_t* values;
    const float* scales;
    Index count, stride;
};

struct FloatRows {
    const float* values;
    Index count, stride;
};

// Rows of results; with `adds`, results are added to the values there (the residual connection).
struct Output {
    float* values;
    Index stride;
    bool adds;
};

// One query row and `count` keys: rows `places[i]` of the tables, or rows `first + i` if `places` is null.
struct Attention {
    const float* query;
    const float* keys;
    const float* values;
    const int32_t* places;
    Index first, count;
    Index heads, key_width, value_width;  // of a head, padded to LANES
    Index key_stride, value_stride;
    float* mixed;
    float* weights;  // room for heads · (count rounded up to LANES) numbers
};

struct Norm {
    const float* gain;
    const float* bias;
    const float* is_real;  // 1 for each place of the real width, 0 beyond
    float width, epsilon;
};

enum class Activation { relu, gelu, gelu_tanh, gelu_sigmoid, silu };

// The `count` largest values of a row so far, largest first; among equals the earlier place is first.
struct Best {
    float* values;
    int32_t* places;
    Index count;
};

struct TrainingKernels;

struct Kernels {
    const char* name;
    const TrainingKernels* training;
    // Compute the blocks of 16 outputs from `first` to before `last`, and write them from column 0 on.
    void (*multiply_int8)(const Int8Matrix&, const Int8Rows&, Index first, Index last, const Output&);
    void (*multiply_float)(const FloatMatrix&, const FloatRows&, Index first, Index last, const Output&);
    void (*quantize)(const float* rows, Index count, Index width, int8_t* values, float* scales);
    void (*normalize)(const Norm&, const float* rows, Index count, Index width, float* normalized);
    void (*activate)(Activation, float* values, Index size);
    void (*attend)(const Attention&);
    // c = f c + (1 - f) w with f = sigmoid(gate); mixed = max(0, c)
    void (*recur)(const float* gate, const float* candidate, Index width, float* state, float* mixed);
    // The largest number of a row; Σ exp(x - largest); update `best` with a row whose places begin at `first_place`.
    float (*largest)(const float* row, Index width);
    float (*sum_of_exponentials)(const float* row, Index width, float largest);
    void (*keep_best)(const float* row, Index width, Index first_place, const Best& best);
    void (*subtract)(float* row, Index width, float number);
    float (*exponential)(float x);
};

// Returns the table of that name; if it is empty, that of the name in TRANSDUCE_INSTRUCTIONS, else of the fastest
// instruction set of this processor. Throws std::invalid_argument if the processor lacks it.
const Kernels& choose_kernels(const char* name);
// The names of all tables that run here, fastest first.
size_t available_kernels(const char* names[8]);

}  // namespace transduce
