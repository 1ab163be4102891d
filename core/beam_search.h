// Beam search with a length penalty, section 6.1 of "Attention Is All You Need", as in decoding/beam_search.py.
//
//     score(Y) = log P(Y | X) / lp(Y)        lp(Y) = ((5 + |Y|) / 6)^α
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "transformer.h"

namespace transduce {

struct SearchConfig {
    Index beam = 4, alternatives = 1, minimum_length = 0;
    float length_penalty = 0.6f;
    bool stops_when_full = false;
    int32_t start = 2, end = 3;
    std::vector<int32_t> never_generated;
};

struct Hypothesis {
    std::vector<int32_t> tokens;
    float log_probability;
};

struct SearchRequest {
    std::vector<int32_t> tokens;  // of all sources, one after the other
    std::vector<Index> lengths;   // of the sources
    std::vector<Index> limits;    // the maximum number of output tokens of each sentence, the end token included
    std::vector<std::vector<int32_t>> prefixes;
    std::vector<std::vector<int32_t>> lists;  // the tokens that each sentence may use; empty if all may use every token
};

// Returns the best hypotheses of each sentence, best first; none if no token was possible. Calls `poll` before every
// step; it may throw to end the search.
std::vector<std::vector<Hypothesis>> beam_search(const Transformer& network, const SearchConfig& config,
                                                 const SearchRequest& request, const std::function<void()>& poll);

}  // namespace transduce
