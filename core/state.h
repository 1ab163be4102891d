// The decoder's state: keys and values of the source and of the target positions so far.
//
// Keys and values of a target position stay where they were written. A beam that continues another copies its list of
// rows (`places`), so no keys or values are copied when beams are reordered. When a table is full, rows that no beam
// refers to are dropped. Rows are sentence-major; a sentence is named by its number in the batch that was started.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "linear.h"
#include "spares.h"
#include "workspace.h"

namespace transduce {

struct State {
    std::shared_ptr<Spares> spares;  // take over the tables when the state ends

    // The source: for each decoder layer a table of keys and values, a row per source token.
    std::vector<Buffer<float>> memory;
    std::vector<Index> starts, lengths;  // of each sentence in it

    // The target so far.
    std::vector<int32_t> sentences;        // of each row
    std::vector<Buffer<float>> past;       // of each decoder layer: keys and values, or the SSRU state of each row
    std::vector<std::vector<int32_t>> places;  // for each row, the rows of `past` of its positions
    Index length = 0, used = 0, room = 0;  // positions decoded; rows of `past` written and allocated

    // For word alignment: the decoder layer whose attention over the source is noted (none if -1), and its mean over the
    // heads, a row per decoded position.
    Index watched = -1;
    std::vector<float> noted;

    // An output layer for each sentence's list of tokens; empty without lists.
    std::vector<std::shared_ptr<const Linear>> outputs;
    std::vector<std::vector<int32_t>> lists;

    Workspace space;
    Buffer<float> logits;

    explicit State(std::shared_ptr<Spares> spares) : spares(std::move(spares)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        for (auto* tables : {&memory, &past})
            for (Buffer<float>& table : *tables) spares->keep(std::move(table));
    }

    Index rows() const { return static_cast<Index>(sentences.size()); }
};

}  // namespace transduce
