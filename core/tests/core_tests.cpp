// Tests of the core as a plain program, which sanitizers and an emulator can run: core_tests prints what failed.
//
// Every instruction set must give the bits of the portable one, any batch and thread those of a sentence alone.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "beam_search.h"
#include "training.h"

using namespace transduce;

namespace {

int failures = 0;

void check(bool is_true, const char* what, const std::string& where = "") {
    if (is_true) return;
    ++failures;
    std::printf("FAILED: %s %s\n", what, where.c_str());
}

std::vector<std::string> instruction_sets() {
    const char* names[8];
    const size_t count = available_kernels(names);
    return {names, names + count};
}

std::vector<float> random_floats(size_t count, unsigned seed, float spread = 1.0f) {
    std::mt19937 generator(seed);
    std::vector<float> values(count);
    for (float& value : values) value = spread * (static_cast<float>(generator() % 20001) / 10000.0f - 1.0f);
    return values;
}

Config small_config(Precision precision) {
    Config config;
    config.vocabulary_size = config.source_vocabulary_size = 71;
    config.d_model = 40, config.d_ff = 90, config.heads = 5, config.d_k = 9, config.d_v = 7;
    config.encoder_layers = 2, config.decoder_layers = 2;
    config.is_pre_norm = config.has_final_norm = true;
    config.embedding_factor = 6.0f, config.query_factor = 1.0f / 3.0f;
    config.precision = precision;
    return config;
}

// Random weights of every name that a network of this configuration reads.
class RandomWeights {
    std::map<std::string, std::vector<float>> values_;
    std::map<std::string, std::pair<Index, Index>> shapes_;

    void add(const std::string& name, Index rows, Index columns, float spread) {
        values_[name] = random_floats(static_cast<size_t>(rows * columns), static_cast<unsigned>(values_.size()), spread);
        shapes_[name] = {rows, columns};
    }
    void add_norm(const std::string& name, Index width) { add(name + ".weight", width, 1, 2.0f), add(name + ".bias", width, 1, 0.5f); }
    void add_attention(const std::string& name, const Config& c) {
        add(name + ".W_Q.weight", c.heads * c.d_k, c.d_model, 0.4f), add(name + ".W_K.weight", c.heads * c.d_k, c.d_model, 0.4f);
        add(name + ".W_V.weight", c.heads * c.d_v, c.d_model, 0.4f), add(name + ".W_O.weight", c.d_model, c.heads * c.d_v, 0.4f);
    }

public:
    explicit RandomWeights(const Config& c) {
        if (c.has_source) add("embeddings.source_VD", c.source_vocabulary_size, c.d_model, 0.3f);
        else add("embeddings.target_VD", c.vocabulary_size, c.d_model, 0.3f);
        for (int stack = !c.has_source; stack < 2; ++stack) {
            const std::string side = stack ? "decoder" : "encoder";
            if (c.has_final_norm) add_norm(side + ".final_norm", c.d_model);
            for (Index layer = 0; layer < (stack ? c.decoder_layers : c.encoder_layers); ++layer) {
                const std::string name = side + ".layers." + std::to_string(layer);
                if (stack && c.is_recurrent) {
                    add(name + ".ssru.W.weight", c.d_model, c.d_model, 0.4f);
                    add(name + ".ssru.W_f.weight", c.d_model, c.d_model, 0.4f), add(name + ".ssru.W_f.bias", c.d_model, 1, 1.0f);
                } else {
                    add_attention(name + ".self_attention", c);
                }
                if (stack && c.has_source) {
                    add_attention(name + ".cross_attention", c);
                    add_norm(name + ".cross_attention_residual.norm", c.d_model);
                }
                add(name + ".feed_forward.W_1.weight", c.d_ff, c.d_model, 0.4f), add(name + ".feed_forward.W_1.bias", c.d_ff, 1, 0.4f);
                add(name + ".feed_forward.W_2.weight", c.d_model, c.d_ff, 0.4f), add(name + ".feed_forward.W_2.bias", c.d_model, 1, 0.4f);
                add_norm(name + ".self_attention_residual.norm", c.d_model), add_norm(name + ".feed_forward_residual.norm", c.d_model);
            }
        }
    }
    WeightReader reader() const {
        std::set<std::string> names;
        for (const auto& [name, shape] : shapes_) names.insert(name);
        return {names, [this](const std::string& name) {
                    Tensor tensor;
                    tensor.floats = values_.at(name).data();
                    tensor.rows = shapes_.at(name).first, tensor.columns = shapes_.at(name).second;
                    return tensor;
                }};
    }
};

Transformer make(const Config& config, const std::string& instructions = "") {
    const RandomWeights weights(config);
    WeightReader reader = weights.reader();
    return Transformer(config, reader, instructions.c_str());
}

using Found = std::vector<std::vector<Hypothesis>>;

Found search(const Transformer& network, const std::vector<std::vector<int32_t>>& sources, bool has_lists = false) {
    SearchConfig config;
    config.never_generated = {0, 1, 2};
    config.alternatives = 3;
    SearchRequest request;
    for (const auto& source : sources) {
        request.tokens.insert(request.tokens.end(), source.begin(), source.end());
        request.lengths.push_back(static_cast<Index>(source.size()));
        request.limits.push_back(12 + static_cast<Index>(source.size()));
        request.prefixes.push_back(source.size() % 2 ? std::vector<int32_t>{9, 5} : std::vector<int32_t>());
        if (has_lists) request.lists.push_back({0, 1, 2, 3, 5, 8, 9, static_cast<int32_t>(10 + source.size()), 30, 44, 60});
    }
    return beam_search(network, config, request, [] {});
}

bool are_equal(const std::vector<Hypothesis>& first, const std::vector<Hypothesis>& second) {
    if (first.size() != second.size()) return false;
    for (size_t i = 0; i < first.size(); ++i)
        if (first[i].tokens != second[i].tokens || std::memcmp(&first[i].log_probability, &second[i].log_probability, 4)) return false;
    return true;
}

const std::vector<std::vector<int32_t>> SOURCES = {{5, 6, 7, 3}, {8, 3}, {9, 10, 11, 12, 13, 14, 70, 3}, {20, 21, 3}};

void test_products_are_exact() {  // also with the largest numbers, where 16-bit sums would overflow
    for (const std::string& name : instruction_sets())
        for (const int largest : {127, 90}) {
            const Kernels& kernels = choose_kernels(name.c_str());
            constexpr Index inputs = 192, outputs = 64, rows = 7;
            std::vector<float> weights(inputs * outputs), x(inputs * rows);
            std::mt19937 generator(3);
            for (float& w : weights) w = generator() % 4 ? static_cast<float>(largest) : -127.0f;
            for (float& a : x) a = generator() % 4 ? 127.0f : -127.0f;
            for (Index row = 0; row < outputs; ++row) weights[row * inputs] = 127.0f;
            Tensor tensor;
            tensor.floats = weights.data(), tensor.rows = outputs, tensor.columns = inputs;
            std::vector<OutputSource> sources;
            std::vector<Index> columns;
            for (Index row = 0; row < outputs; ++row) sources.push_back({tensor, row});
            for (Index column = 0; column < inputs; ++column) columns.push_back(column);
            const Linear linear(Precision::int8, sources, columns, inputs);
            Workspace space;
            std::vector<float> y(rows * outputs);
            linear.apply(kernels, space.input(kernels, Precision::int8, x.data(), rows, inputs), {y.data(), outputs, false});
            bool is_exact = true;
            for (Index r = 0; r < rows; ++r)
                for (Index o = 0; o < outputs; ++o) {
                    double expected = 0.0;
                    for (Index i = 0; i < inputs; ++i) expected += static_cast<double>(x[r * inputs + i]) * weights[o * inputs + i];
                    is_exact = is_exact && y[r * outputs + o] == static_cast<float>(expected);
                }
            check(is_exact, "int8 sums are exact", name);
        }
}

void test_functions_are_near_those_of_the_library() {
    for (const std::string& name : instruction_sets()) {
        const Kernels& kernels = choose_kernels(name.c_str());
        double worst = 0.0;
        for (float x = -86.0f; x < 80.0f; x += 0.37f)
            worst = std::max(worst, std::fabs(kernels.exponential(x) / std::exp(static_cast<double>(x)) - 1.0));
        check(worst < 3e-7, "the exponential", name);
        check(kernels.exponential(-1e30f) == 0.0f && kernels.exponential(0.0f) == 1.0f, "the exponential's bounds", name);
        std::vector<float> x = random_floats(64, 5, 6.0f), y = x;
        kernels.activate(Activation::gelu, y.data(), 64);
        for (size_t i = 0; i < x.size(); ++i) {
            const double expected = 0.5 * x[i] * (1.0 + std::erf(x[i] / std::sqrt(2.0)));
            check(std::fabs(y[i] - expected) < 2e-6, "gelu", name);
        }
    }
}

void test_instruction_sets_and_batches_agree() {
    for (const Precision precision : {Precision::int8, Precision::float32})
        for (int kind = 0; kind < 4; ++kind) {
            Config config = small_config(precision);
            config.is_recurrent = kind == 1;
            config.is_pre_norm = config.has_final_norm = kind != 2;
            config.activation = static_cast<Activation>(kind);
            const Found expected = search(make(config, "portable"), SOURCES, kind == 3);
            check(expected[0].size() == 3, "a search finds alternatives");
            for (const std::string& name : instruction_sets()) {
                const Transformer network = make(config, name);
                const Found found = search(network, SOURCES, kind == 3);
                for (size_t i = 0; i < SOURCES.size(); ++i) {
                    check(are_equal(found[i], expected[i]), "instruction sets agree", name);
                    check(are_equal(search(network, {SOURCES[i]}, kind == 3)[0], expected[i]), "a sentence alone agrees", name);
                }
            }
        }
}

// Returns all that the kernels of training write, for rows of this width.
std::vector<BFloat16> trained(const TrainingKernels& kernels, Index width) {
    constexpr Index rows = 6;
    const auto bfloats = [&](unsigned seed, Index count) {
        std::vector<BFloat16> values;
        for (const float x : random_floats(static_cast<size_t>(count), seed, 3.0f)) {
            uint32_t bits;
            std::memcpy(&bits, &x, 4);
            values.push_back(static_cast<BFloat16>(bits >> 16));
        }
        return values;
    };
    const Index size = rows * width;
    std::vector<BFloat16> logits = bfloats(1, size), scores = bfloats(2, size), gradient = bfloats(3, size), x = bfloats(4, size),
                          sums(size), y(size), to_branch(size);
    const std::vector<BFloat16> branch = bfloats(5, size);
    std::vector<int16_t> words;
    for (const BFloat16 each : bfloats(6, size)) words.push_back(static_cast<int16_t>(each * 31));
    const std::vector<float> gain = random_floats(width, 7), bias = random_floats(width, 8);
    const std::vector<int64_t> labels = {0, width - 1, 1, 2, 0}, keys = {width, width / 2 + 1}, queries = {3, 2};
    std::vector<float> floats(4 * width + 5 * rows), room(padded(width));
    float *total = floats.data(), *statistics = total + 4 * width;
    kernels.label_gradients({logits.data(), labels.data(), statistics, room.data(), 5, rows, width, -0.9f});
    kernels.attention_weights({scores.data(), keys.data(), queries.data(), room.data(), 2, 1, 3, width, width % 2 == 0, 0.3f});
    kernels.attention_gradient(gradient.data(), scores.data(), rows, width, 0.3f);
    kernels.add_and_norm({x.data(), branch.data(), words.data(), gain.data(), bias.data(), sums.data(), y.data(),
                          statistics + 3 * rows, rows, width, -9000.0f, 1.3f, 1e-6f});
    kernels.norm_gradient({gradient.data(), sums.data(), words.data(), gain.data(), statistics + 3 * rows, x.data(),
                           to_branch.data(), total, total + width, rows, width, -9000.0f, 1.3f});
    kernels.relu_gradient(y.data(), sums.data(), total + 2 * width, rows, width);
    kernels.add_sum_of_rows(to_branch.data(), total + 3 * width, rows, width);
    kernels.add_to(total, logits.data(), width);
    std::vector<BFloat16> all;
    for (const auto* each : {&logits, &scores, &gradient, &x, &sums, &y, &to_branch}) all.insert(all.end(), each->begin(), each->end());
    const auto* bits = reinterpret_cast<const BFloat16*>(floats.data());
    all.insert(all.end(), bits, bits + 2 * floats.size());
    return all;
}

void test_training_has_the_same_bits_everywhere() {
    for (Index width = 3; width < 40; ++width) {
        const auto expected = trained(*choose_kernels("portable").training, width);
        for (const std::string& name : instruction_sets())
            check(trained(*choose_kernels(name.c_str()).training, width) == expected, "training agrees", name);
    }
}

void test_threads_share_a_network() {
    const Transformer network = make(small_config(Precision::int8));
    const Found expected = search(network, SOURCES);
    std::vector<std::thread> threads;
    std::vector<int> are_same(4);
    for (size_t i = 0; i < are_same.size(); ++i)
        threads.emplace_back([&, i] { are_same[i] = are_equal(search(network, {SOURCES[i]})[0], expected[i]); });
    for (std::thread& thread : threads) thread.join();
    for (const int is_same : are_same) check(is_same, "threads agree");
}

void test_a_language_model_has_no_source() {
    Config config = small_config(Precision::float32);
    config.has_source = false;
    config.encoder_layers = config.source_vocabulary_size = 0;
    const Transformer network = make(config);
    const auto state = network.start({}, {0, 0});
    const int32_t tokens[] = {2, 9};
    const float* found = network.log_probabilities(*state, network.advance(*state, tokens));
    double total = 0.0;
    for (Index token = 0; token < config.vocabulary_size; ++token) total += std::exp(found[token]);
    check(std::fabs(total - 1.0) < 1e-5, "probabilities add up to 1");
    std::vector<int32_t> text;
    for (int32_t place = 0; place < 300; ++place) text.push_back(place * 7 % 71);
    text.resize(300);
    const auto one_by_one = network.start({}, {0}), at_once = network.start(text, {300});
    for (const int32_t token : text) network.advance(*one_by_one, &token);
    const int32_t last = 5;
    const float* slow = network.log_probabilities(*one_by_one, network.advance(*one_by_one, &last));
    const float* fast = network.log_probabilities(*at_once, network.advance(*at_once, &last));
    for (Index token = 0; token < config.vocabulary_size; ++token)
        check(slow[token] == fast[token], "a beginning that is read in one pass gives the same bits");
}

// Rows of keys and values that no beam needs are dropped, and the others move: a beam reads what it read alone.
void test_beams_that_are_exchanged_keep_their_past() {
    const Transformer network = make(small_config(Precision::float32));
    const auto state = network.start({5, 3, 9, 3}, {4});
    std::mt19937 generator(1);
    std::vector<std::vector<int32_t>> histories(8);
    network.select(*state, std::vector<int32_t>(8, 0));
    for (int step = 0; step < 150; ++step) {
        std::vector<int32_t> parents, tokens;
        for (int row = 0; row < 8; ++row) {
            parents.push_back(static_cast<int32_t>(generator() % (step % 10 ? 8 : 2)));
            tokens.push_back(static_cast<int32_t>(generator() % 71));
        }
        const auto before = histories;
        for (size_t row = 0; row < 8; ++row) (histories[row] = before[static_cast<size_t>(parents[row])]).push_back(tokens[row]);
        network.select(*state, parents);
        const float* found = network.advance(*state, tokens.data());
        if (step % 10 != 9) continue;
        const std::vector<float> hidden(found, found + 40);
        const auto alone = network.start({5, 3, 9, 3}, {4});
        const float* expected = nullptr;
        for (const int32_t token : histories[0]) expected = network.advance(*alone, &token);
        check(std::equal(hidden.begin(), hidden.end(), expected), "a beam has the past of the beam that it continues");
    }
}

void test_spare_buffers_are_used_again() {
    Spares spares;
    Buffer<float> small(100), large(1000);
    const float *first = small.data(), *second = large.data();
    spares.keep(std::move(small)), spares.keep(std::move(large));
    Buffer<float> taken = spares.take(99);
    check(taken.data() == first && taken.size() == 100, "the smallest spare buffer with room is taken");
    check(spares.take(1001).size() == 1001, "a new buffer is made if none has room");
    check(spares.take(5).data() == second, "a larger spare buffer has room, too");
    for (int i = 0; i < 3; ++i) spares.keep(spares.take(Index(15) << 20));  // 60 MB
    Buffer<float> one = spares.take(Index(15) << 20), other = spares.take(Index(15) << 20), third = spares.take(Index(15) << 20);
    const float* kept[] = {one.data(), other.data()};
    for (Buffer<float>* own : {&one, &other, &third}) spares.keep(std::move(*own));
    const float* again = spares.take(Index(15) << 20).data();
    check(again == kept[0] || again == kept[1], "large buffers are kept up to a limit");
    check(spares.take(Index(15) << 20).size() == Index(15) << 20, "beyond it there is a new one");
}

template <class Function>
void expect_refusal(const char* what, Function function) {
    try {
        function();
        check(false, what);
    } catch (const std::invalid_argument&) {
    }
}

void test_wrong_input_is_refused() {
    const Config config = small_config(Precision::int8);
    const Transformer network = make(config);
    expect_refusal("a token outside the vocabulary", [&] { search(network, {{5, 71, 3}}); });
    expect_refusal("an empty source", [&] { search(network, {{}}); });
    const auto state = network.start({5, 3}, {2});
    expect_refusal("a row that does not exist", [&] { network.select(*state, {1}); });
    expect_refusal("a list outside the vocabulary", [&] { network.restrict(*state, {{71}}); });
    Config other = config;
    other.d_ff = 91;
    const RandomWeights weights(config);
    expect_refusal("weights of another shape", [&] {
        WeightReader reader = weights.reader();
        Transformer(other, reader, "");
    });
    expect_refusal("an unknown instruction set", [&] { make(config, "abacus"); });
}

}  // namespace

int main() {
    test_products_are_exact();
    test_functions_are_near_those_of_the_library();
    test_instruction_sets_and_batches_agree();
    test_training_has_the_same_bits_everywhere();
    test_threads_share_a_network();
    test_a_language_model_has_no_source();
    test_beams_that_are_exchanged_keep_their_past();
    test_spare_buffers_are_used_again();
    test_wrong_input_is_refused();
    std::printf("%s", failures ? "" : "all tests passed with");
    for (const std::string& name : instruction_sets()) std::printf(" %s", name.c_str());
    std::printf("\n");
    return failures != 0;
}
