#include "transformer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "positional_encoding.h"

namespace transduce {

namespace {

constexpr Index COMPUTED_POSITIONS = 128;  // kept in a table; later ones are computed when they are needed
constexpr Index ENCODED_AT_ONCE = 256;     // tokens; more rows would not stay in a core's cache
constexpr Index READ_AT_ONCE = 128;        // tokens of a prompt, likewise
constexpr Index FIRST_ROOM = 256;          // rows of keys and values

std::shared_ptr<const Linear> embedding(const Config& config, WeightReader& weights, const std::string& name, Index rows) {
    const Tensor matrix = weights.matrix(name, rows, config.d_model);
    std::vector<float> bias(rows);  // of the output layer; an embedding does not read it
    if (config.output_bias && rows == config.vocabulary_size) bias = weights.vector("embeddings.output_bias_V", rows);
    std::vector<OutputSource> outputs;
    for (Index row = 0; row < rows; ++row)
        outputs.push_back({matrix, row, bias[row], 1.0f});
    std::vector<Index> columns;
    for (Index column = 0; column < config.d_model; ++column) columns.push_back(column);
    return std::make_shared<Linear>(config.precision, outputs, columns, padded(config.d_model), -INFINITY);
}

Buffer<float> position_table(const Config& config, WeightReader& weights, const std::string& name) {
    const Index width = padded(config.d_model);
    if (config.positions != Positions::learned) {
        Buffer<float> table(COMPUTED_POSITIONS * width);
        for (Index row = 0; row < COMPUTED_POSITIONS; ++row) write_position(config, row, table.data() + row * width);
        return table;
    }
    const Tensor learned = weights.matrix(name, config.learned_positions, config.d_model);  // before memory is allocated
    Buffer<float> table(learned.rows * width);
    for (Index row = 0; row < learned.rows; ++row)
        for (Index column = 0; column < learned.columns; ++column)
            table[row * width + column] = learned.floats ? learned.floats[row * learned.columns + column]
                                                         : static_cast<float>(learned.bytes[row * learned.columns + column]) *
                                                               learned.scales[row];
    return table;
}

void require_tokens(const int32_t* tokens, Index count, Index vocabulary_size) {
    for (Index i = 0; i < count; ++i)
        if (tokens[i] < 0 || tokens[i] >= vocabulary_size)
            throw std::invalid_argument("the token " + std::to_string(tokens[i]) + " is outside the vocabulary of " +
                                        std::to_string(vocabulary_size));
}

// Appends the mean over heads of the attention weights that were computed last.
void note(State& state, Index keys, Index heads) {
    const Index room = (keys + LANES - 1) / LANES * LANES;
    for (Index key = 0; key < keys; ++key) {
        float total = 0.0f;
        for (Index head = 0; head < heads; ++head) total += state.space.weights[head * room + key];
        state.noted.push_back(total / static_cast<float>(heads));
    }
}

}  // namespace

Transformer::Transformer(const Config& config, WeightReader& weights, const char* instructions)
    : config_(config), kernels_(choose_kernels(instructions)) {
    require_possible(config);
    const std::string source = "embeddings.source_VD", target = "embeddings.target_VD", output = "embeddings.output_VD";
    if (config.has_source) source_embedding_ = embedding(config, weights, source, config.source_vocabulary_size);
    const bool has_target = weights.has(target) || !config.has_source;
    if (!has_target && config.source_vocabulary_size != config.vocabulary_size)
        throw std::invalid_argument("source and target share an embedding but have vocabularies of different sizes");
    target_embedding_ = has_target ? embedding(config, weights, target, config.vocabulary_size) : source_embedding_;
    output_ = weights.has(output) ? embedding(config, weights, output, config.vocabulary_size) : target_embedding_;
    if (config.has_source) encoder_positions_ = position_table(config, weights, "encoder.positions.table_TD");
    decoder_positions_ = position_table(config, weights, "decoder.positions.table_TD");
    for (Index layer = 0; layer < config.encoder_layers; ++layer)
        encoder_.emplace_back(config, weights, "encoder.layers." + std::to_string(layer), false);
    for (Index layer = 0; layer < config.decoder_layers; ++layer)
        decoder_.emplace_back(config, weights, "decoder.layers." + std::to_string(layer), true);
    if (config.embedding_norm) {
        if (config.has_source) encoder_embedding_norm_ = LayerNorm(config, weights, "encoder.embedding_norm");
        decoder_embedding_norm_ = LayerNorm(config, weights, "decoder.embedding_norm");
    }
    if (config.has_final_norm) {
        if (config.has_source) encoder_final_norm_ = LayerNorm(config, weights, "encoder.final_norm");
        decoder_final_norm_ = LayerNorm(config, weights, "decoder.final_norm");
    }
    weights.refuse_unread();
}

const float* Transformer::position(const Buffer<float>& table, Index position, Workspace& space) const {
    const Index width = padded(config_.d_model);
    if (position < table.size() / width) return table.data() + position * width;
    if (config_.positions == Positions::learned)
        throw std::invalid_argument("a sentence is longer than the " + std::to_string(config_.learned_positions) +
                                    " positions that the model has learned");
    write_position(config_, position, space.position.reserve(width));
    return space.position.data();
}

// x = E[token] · factor + PE(position)
void Transformer::embed(const Linear& matrix, const int32_t* tokens, const Index* positions, Index count, bool is_target,
                        Workspace& space) const {
    const Index width = padded(config_.d_model);
    float* x = space.x.reserve(count * width);
    const Buffer<float>& table = is_target ? decoder_positions_ : encoder_positions_;
    for (Index row = 0; row < count; ++row, x += width) {
        if (is_target && config_.start_from_zeros && tokens[row] == config_.start) std::fill_n(x, width, 0.0f);
        else matrix.read_row(tokens[row], config_.embedding_factor, x);
        const float* vector = position(table, positions[row], space);
        for (Index i = 0; i < width; ++i) x[i] += vector[i];
    }
    if (config_.embedding_norm)
        (is_target ? decoder_embedding_norm_ : encoder_embedding_norm_).apply(kernels_, space.x.data(), count, space.x.data());
}

std::unique_ptr<State> Transformer::start(const std::vector<int32_t>& tokens, const std::vector<Index>& lengths) const {
    auto state = std::make_unique<State>(spares_);
    const Index count = static_cast<Index>(lengths.size());
    Index total = 0;
    for (Index sentence = 0; sentence < count; ++sentence) {
        if (config_.has_source && lengths[sentence] < 1) throw std::invalid_argument("a source sentence has no tokens");
        state->sentences.push_back(static_cast<int32_t>(sentence));
        state->starts.push_back(total);
        total += lengths[sentence];
    }
    if (total != static_cast<Index>(tokens.size())) throw std::invalid_argument("lengths do not add up to the tokens");
    state->lengths = lengths;
    state->places.resize(count);
    state->past.resize(decoder_.size());
    if (!config_.has_source) {
        read_prompts(*state, tokens.data());
        return state;
    }
    require_tokens(tokens.data(), total, config_.source_vocabulary_size);
    for (const Layer& layer : decoder_)
        state->memory.push_back(spares_->take(total * layer.cross_attention.widths.stride()));
    for (Index first = 0, last = 0; first < count; first = last) {
        for (Index room = ENCODED_AT_ONCE; last < count && (last == first || lengths[last] <= room); ++last)
            room -= lengths[last];
        encode(*state, tokens.data(), first, last);
    }
    return state;
}

// Encodes the sentences `first` to `last` and writes each decoder layer's keys and values of them.
void Transformer::encode(State& state, const int32_t* tokens, Index first, Index last) const {
    const Index begin = state.starts[first], count = state.starts[last - 1] + state.lengths[last - 1] - begin;
    Workspace& space = state.space;
    std::vector<Index> positions;
    Index longest = 0;
    for (Index sentence = first; sentence < last; ++sentence) {
        for (Index i = 0; i < state.lengths[sentence]; ++i) positions.push_back(i);
        longest = std::max(longest, state.lengths[sentence]);
    }
    embed(*source_embedding_, tokens + begin, positions.data(), count, false, space);
    Sublayers sublayers(kernels_, config_, space, count);
    const HeadWidths widths = encoder_.front().self_attention.widths;
    const Index stride = widths.keys() + widths.stride();
    float* projected = space.projected.reserve(count * stride);
    std::fill_n(space.mixed.reserve(count * widths.values()), count * widths.values(), 0.0f);
    float* weights = space.weights.reserve(widths.heads * (longest + LANES));
    for (const Layer& layer : encoder_) {
        sublayers.project(layer.self_attention.query, sublayers.enter(layer.self_attention_norm), projected, stride);
        for (Index sentence = first, row = 0; sentence < last; ++sentence) {
            const Index start = row, length = state.lengths[sentence];
            for (; row < start + length; ++row)
                kernels_.attend({projected + row * stride, projected + widths.keys(), projected + 2 * widths.keys(), nullptr,
                                 start, length, widths.heads, widths.key(), widths.value(), stride, stride,
                                 space.mixed.data() + row * widths.values(), weights});
        }
        sublayers.leave(layer.self_attention.output, sublayers.input(space.mixed.data(), widths.values()),
                        layer.self_attention_norm);
        sublayers.feed_forward(layer.feed_forward, layer.feed_forward_norm);
    }
    if (config_.has_final_norm) sublayers.normalize(encoder_final_norm_);
    const Input memory = sublayers.input(space.x.data(), padded(config_.d_model));
    for (size_t layer = 0; layer < decoder_.size(); ++layer) {
        const Index row = decoder_[layer].cross_attention.widths.stride();
        sublayers.project(decoder_[layer].cross_attention.keys_values, memory, state.memory[layer].data() + begin * row, row);
    }
}

void Transformer::restrict(State& state, std::vector<std::vector<int32_t>> lists) const {
    if (lists.size() != state.lengths.size() || state.length) throw std::invalid_argument("give each sentence a list at the start");
    state.outputs.clear();
    for (const std::vector<int32_t>& list : lists) {
        require_tokens(list.data(), static_cast<Index>(list.size()), config_.vocabulary_size);
        state.outputs.push_back(std::make_shared<Linear>(output_->among(list.data(), static_cast<Index>(list.size()))));
    }
    state.lists = std::move(lists);
}

// Makes room for the keys and values of `count` more positions.
void Transformer::make_room(State& state, Index count) const {
    const Index stride = decoder_.front().self_attention.widths.stride();
    if (state.used + count > state.room) {
        std::vector<int32_t> moved(state.used, -1);
        for (const auto& places : state.places)
            for (const int32_t place : places) moved[place] = 0;
        int32_t kept = 0;
        for (int32_t& place : moved)
            if (!place) place = kept++;
        // Rows only move down, so they can move within a table; it grows if that would soon be necessary again.
        const bool grows = kept + 4 * count > state.room;
        if (grows) state.room = std::max(FIRST_ROOM, kept + 12 * count);
        for (Buffer<float>& table : state.past) {
            Buffer<float> roomier = grows ? spares_->take(state.room * stride) : Buffer<float>();
            float* target = grows ? roomier.data() : table.data();
            for (Index place = 0; place < state.used; ++place)
                if (moved[place] >= 0 && (grows || moved[place] != place))
                    std::memcpy(target + moved[place] * stride, table.data() + place * stride, stride * sizeof(float));
            if (grows) spares_->keep(std::exchange(table, std::move(roomier)));
        }
        for (auto& places : state.places)
            for (int32_t& place : places) place = moved[place];
        state.used = kept;
    }
}

// Reads the beginnings of a language model's texts, all positions of a text in one pass.
void Transformer::read_prompts(State& state, const int32_t* tokens) const {
    for (Index row = 0; row < state.rows(); ++row)
        for (Index first = 0, last = 0; first < state.lengths[row]; first = last) {
            last = std::min(first + READ_AT_ONCE, state.lengths[row]);
            std::vector<Reading> positions;
            for (Index place = first; place < last; ++place) positions.push_back({row, place});
            read(state, tokens + state.starts[row] + first, positions);
        }
}

void Transformer::attend_to_past(Sublayers& sublayers, State& state, Index number, const std::vector<Reading>& read) const {
    const Layer& layer = decoder_[number];
    const Index rows = static_cast<Index>(read.size()), width = padded(config_.d_model);
    Workspace& space = state.space;
    Buffer<float>& past = state.past[number];
    const Input input = sublayers.enter(layer.self_attention_norm);
    if (config_.is_recurrent) {
        if (!state.length) past = Buffer<float>(rows * width);
        float* projected = space.projected.reserve(rows * 2 * width);
        float* mixed = space.inner.reserve(rows * width);
        sublayers.project(layer.ssru.gate_and_candidate, input, projected, 2 * width);
        for (Index row = 0; row < rows; ++row, projected += 2 * width)
            kernels_.recur(projected, projected + width, width, past.data() + row * width, mixed + row * width);
        return sublayers.leave_with(mixed, layer.self_attention_norm);
    }
    const HeadWidths widths = layer.self_attention.widths;
    const Index stride = widths.keys() + widths.stride();
    float* projected = space.projected.reserve(rows * stride);
    float* mixed = space.mixed.data();
    sublayers.project(layer.self_attention.query, input, projected, stride);
    for (Index row = 0; row < rows; ++row) {
        const std::vector<int32_t>& places = state.places[read[row].row];
        const float* own = projected + row * stride;
        std::memcpy(past.data() + places[read[row].place] * widths.stride(), own + widths.keys(),
                    (widths.keys() + widths.values()) * sizeof(float));
        kernels_.attend({own, past.data(), past.data() + widths.keys(), places.data(), 0, read[row].place + 1, widths.heads,
                         widths.key(), widths.value(), widths.stride(), widths.stride(), mixed + row * widths.values(),
                         space.weights.data()});
    }
    sublayers.leave(layer.self_attention.output, sublayers.input(mixed, widths.values()), layer.self_attention_norm);
}

void Transformer::attend_to_source(Sublayers& sublayers, State& state, Index number) const {
    const Layer& layer = decoder_[number];
    const HeadWidths widths = layer.cross_attention.widths;
    Workspace& space = state.space;
    float* projected = space.projected.reserve(state.rows() * widths.keys());
    float* mixed = space.mixed.data();
    const float* memory = state.memory[number].data();
    sublayers.project(layer.cross_attention.query, sublayers.enter(layer.cross_attention_norm), projected, widths.keys());
    for (Index row = 0; row < state.rows(); ++row) {
        const int32_t sentence = state.sentences[row];
        kernels_.attend({projected + row * widths.keys(), memory, memory + widths.keys(), nullptr, state.starts[sentence],
                         state.lengths[sentence], widths.heads, widths.key(), widths.value(), widths.stride(),
                         widths.stride(), mixed + row * widths.values(), space.weights.data()});
        if (number == state.watched) note(state, state.lengths[sentence], widths.heads);
    }
    sublayers.leave(layer.cross_attention.output, sublayers.input(mixed, widths.values()), layer.cross_attention_norm);
}

std::vector<float> Transformer::attention(const std::vector<int32_t>& source, const std::vector<int32_t>& target,
                                          Index layer) const {
    if (!config_.has_source || layer < 0 || layer >= config_.decoder_layers)
        throw std::invalid_argument("there is no attention over the source in decoder layer " + std::to_string(layer));
    const auto state = start(source, {static_cast<Index>(source.size())});
    state->watched = layer;
    int32_t newest = static_cast<int32_t>(config_.start);
    for (const int32_t token : target) {
        advance(*state, &newest);
        newest = token;
    }
    return std::move(state->noted);
}

const float* Transformer::advance(State& state, const int32_t* tokens) const {
    const Index rows = state.rows();
    std::vector<int32_t> fed(tokens, tokens + rows);
    if (!state.lists.empty())
        for (Index row = 0; row < rows; ++row) {
            const auto& list = state.lists[state.sentences[row]];
            require_tokens(&fed[row], 1, static_cast<Index>(list.size()));
            fed[row] = list[fed[row]];
        }
    std::vector<Reading> positions;
    for (Index row = 0; row < rows; ++row)  // texts may have beginnings of different lengths
        positions.push_back({row, config_.has_source ? state.length : static_cast<Index>(state.places[row].size())});
    const float* hidden = read(state, fed.data(), positions);
    ++state.length;
    return hidden;
}

// Passes one token for each position through all layers; the positions of a row come in their order.
const float* Transformer::read(State& state, const int32_t* tokens, const std::vector<Reading>& read) const {
    const Index rows = static_cast<Index>(read.size());
    Workspace& space = state.space;
    require_tokens(tokens, rows, config_.vocabulary_size);
    std::vector<Index> positions;
    for (const Reading& one : read) positions.push_back(one.place);
    embed(*target_embedding_, tokens, positions.data(), rows, true, space);
    if (!config_.is_recurrent) {
        make_room(state, rows);
        for (const Reading& one : read) state.places[one.row].push_back(static_cast<int32_t>(state.used++));
    }
    const HeadWidths widths{config_.heads, config_.d_k, config_.d_v};
    const Index longest = std::max(*std::max_element(positions.begin(), positions.end()) + 1,
                                   *std::max_element(state.lengths.begin(), state.lengths.end()));
    space.weights.reserve(widths.heads * (longest + LANES));
    std::fill_n(space.mixed.reserve(rows * widths.values()), rows * widths.values(), 0.0f);
    Sublayers sublayers(kernels_, config_, space, rows);
    for (size_t layer = 0; layer < decoder_.size(); ++layer) {
        attend_to_past(sublayers, state, static_cast<Index>(layer), read);
        if (config_.has_source) attend_to_source(sublayers, state, static_cast<Index>(layer));
        sublayers.feed_forward(decoder_[layer].feed_forward, decoder_[layer].feed_forward_norm);
    }
    if (config_.has_final_norm) sublayers.normalize(decoder_final_norm_);
    return space.x.data();
}

void Transformer::select(State& state, const std::vector<int32_t>& parents) const {
    const Index width = padded(config_.d_model), count = static_cast<Index>(parents.size());
    std::vector<int32_t> sentences;
    std::vector<std::vector<int32_t>> places;
    for (const int32_t parent : parents) {
        if (parent < 0 || parent >= state.rows()) throw std::invalid_argument("there is no row " + std::to_string(parent));
        sentences.push_back(state.sentences[parent]);
        places.push_back(state.places[parent]);
    }
    if (config_.is_recurrent && state.length)
        for (Buffer<float>& table : state.past) {
            Buffer<float> selected;
            selected.reserve(count * width);
            for (Index row = 0; row < count; ++row)
                std::copy_n(table.data() + parents[row] * width, width, selected.data() + row * width);
            table = std::move(selected);
        }
    state.sentences = std::move(sentences);
    state.places = std::move(places);
}

Index Transformer::output_width(const State& state) const {
    if (state.outputs.empty()) return config_.vocabulary_size;
    Index width = 0;
    for (const auto& output : state.outputs) width = std::max(width, output->outputs());
    return width;
}

float* Transformer::log_probabilities(State& state, const float* hidden) const {
    const Index inputs = padded(config_.d_model), stride = padded(output_width(state));
    float* logits = state.logits.reserve(state.rows() * stride);
    for_outputs(state, [&](const Linear& output, Index first, Index last) {
        const Input rows = state.space.input(kernels_, config_.precision, hidden + first * inputs, last - first, inputs);
        output.apply(kernels_, rows, {logits + first * stride, stride, false});
        for (Index row = first; row < last; ++row)
            std::fill(logits + row * stride + output.outputs(), logits + (row + 1) * stride, -INFINITY);
    });
    log_softmax(kernels_, logits, state.rows(), stride);
    return logits;
}

}  // namespace transduce
