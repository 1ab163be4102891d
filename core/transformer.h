// The Transformer, section 3 of "Attention Is All You Need", for search: encode once, then one position at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "config.h"
#include "layers.h"
#include "output.h"
#include "state.h"

namespace transduce {

// A target position that is computed: the position `place` of the row `row` of the state.
struct Reading {
    Index row, place;
};

class Transformer {
    Config config_;
    const Kernels& kernels_;
    std::shared_ptr<const Linear> source_embedding_, target_embedding_, output_;
    std::vector<Layer> encoder_, decoder_;
    LayerNorm encoder_embedding_norm_, decoder_embedding_norm_, encoder_final_norm_, decoder_final_norm_;
    Buffer<float> encoder_positions_, decoder_positions_;  // learned, or the first computed ones
    std::shared_ptr<Spares> spares_ = std::make_shared<Spares>();

    const float* position(const Buffer<float>& table, Index position, Workspace& space) const;
    void embed(const Linear& matrix, const int32_t* tokens, const Index* positions, Index count, bool is_target,
               Workspace& space) const;
    void encode(State& state, const int32_t* tokens, Index first, Index last) const;
    void attend_to_past(Sublayers& sublayers, State& state, Index layer, const std::vector<Reading>& read) const;
    void attend_to_source(Sublayers& sublayers, State& state, Index layer) const;
    void make_room(State& state, Index count) const;
    void read_prompts(State& state, const int32_t* tokens) const;
    const float* read(State& state, const int32_t* tokens, const std::vector<Reading>& read) const;

public:
    Transformer(const Config& config, WeightReader& weights, const char* instructions);

    const Config& config() const { return config_; }
    const Kernels& kernels() const { return kernels_; }
    // The maximum number of tokens of a sentence, or 0 if there is no bound.
    Index longest_sentence() const { return config_.positions == Positions::learned ? config_.learned_positions : 0; }

    // Encodes the sources and returns the first state; `tokens` holds all sentences, one after the other. A language model
    // has read them instead: they are the beginnings of its texts, and may be empty.
    std::unique_ptr<State> start(const std::vector<int32_t>& tokens, const std::vector<Index>& lengths) const;
    // Restricts the output layer of each sentence to its list of tokens.
    void restrict(State& state, std::vector<std::vector<int32_t>> lists) const;
    // Feeds each row its newest token; returns the inputs of the output layer, padded(d_model) apart.
    const float* advance(State& state, const int32_t* tokens) const;
    // Each new row continues the row `parents[r]`.
    void select(State& state, const std::vector<int32_t>& parents) const;
    // Calls visit(linear, first row, last row) for each run of rows that share an output layer.
    template <class Visit>
    void for_outputs(const State& state, Visit visit) const {
        if (state.outputs.empty()) return visit(*output_, Index(0), state.rows());
        for (Index first = 0, last = 0; first < state.rows(); first = last) {
            const int32_t sentence = state.sentences[first];
            while (last < state.rows() && state.sentences[last] == sentence) ++last;
            visit(*state.outputs[sentence], first, last);
        }
    }
    // Feeds a finished target; returns a decoder layer's attention over the source, the mean over its heads: a row per target
    // token, a column per source token.
    std::vector<float> attention(const std::vector<int32_t>& source, const std::vector<int32_t>& target, Index layer) const;
    // The number of log-probabilities that a step returns for each row.
    Index output_width(const State& state) const;
    // Log-probabilities of the next token of every row, `output_width` apart; valid until the next call.
    float* log_probabilities(State& state, const float* hidden) const;
};

}  // namespace transduce
