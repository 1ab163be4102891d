// The Python module transduce.core._core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "beam_search.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace transduce;

void bind_training(nb::module_& module);  // training_module.cpp

namespace {

using Ids = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sentences = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using LogProbabilities = nb::ndarray<nb::numpy, float, nb::ndim<3>>;
using Lists = std::vector<std::vector<int32_t>>;

struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error("the search was cancelled") {}
};

// Ends searches from another thread.
struct Cancellation {
    std::atomic<bool> is_set{false};
};

// Called between steps: ends a search that was cancelled, and lets Python handle Ctrl-C 20 times a second.
class Poll {
    const Cancellation* cancellation_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();

public:
    explicit Poll(const Cancellation* cancellation) : cancellation_(cancellation) {}

    void operator()() {
        if (cancellation_ && cancellation_->is_set.load(std::memory_order_relaxed)) throw Cancelled();
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return;
        last_ = now;
        nb::gil_scoped_acquire acquired;
        if (PyErr_CheckSignals()) throw nb::python_error();
    }
};

struct StateOfBatch {
    std::shared_ptr<const Transformer> network;
    std::unique_ptr<State> state;
};

int32_t narrowed(int64_t id) {
    if (id < 0 || id > INT32_MAX) throw std::invalid_argument("an id is negative or too large");
    return static_cast<int32_t>(id);
}

Tensor tensor_of(const std::string& name, const nb::ndarray<nb::ro>& array) {
    if (array.ndim() < 1 || array.ndim() > 2) throw std::invalid_argument("the weights " + name + " have no matrix' shape");
    int64_t expected = 1;
    for (size_t axis = array.ndim(); axis-- > 0; expected *= static_cast<int64_t>(array.shape(axis)))
        if (array.stride(axis) != expected && array.shape(axis) > 1)
            throw std::invalid_argument("the weights " + name + " are not contiguous");
    Tensor tensor;
    tensor.rows = static_cast<Index>(array.shape(0));
    tensor.columns = array.ndim() == 2 ? static_cast<Index>(array.shape(1)) : 1;
    if (array.dtype() == nb::dtype<float>()) tensor.floats = static_cast<const float*>(array.data());
    else if (array.dtype() == nb::dtype<int8_t>()) tensor.bytes = static_cast<const int8_t*>(array.data());
    else throw std::invalid_argument("the weights " + name + " are neither float32 nor int8");
    return tensor;
}

// Reads weights from a Python mapping; int8 weights have their scales beside them, as NAME.scale.
WeightReader reader_of(const nb::object& weights) {
    const std::string ending = ".scale";
    std::set<std::string> all, names;
    for (const auto& key : weights) all.insert(nb::cast<std::string>(key));
    for (const std::string& name : all)
        if (!name.ends_with(ending) || !all.count(name.substr(0, name.size() - ending.size()))) names.insert(name);
    const auto fetch = [weights, ending](const std::string& name) {
        using Array = nb::ndarray<nb::ro>;
        auto owners = std::make_shared<std::vector<Array>>();
        owners->push_back(nb::cast<Array>(weights[name.c_str()]));
        Tensor tensor = tensor_of(name, owners->back());
        if (tensor.bytes) {
            owners->push_back(nb::cast<Array>(weights[(name + ending).c_str()]));
            const Tensor scales = tensor_of(name + ending, owners->back());
            if (!scales.floats || scales.rows != tensor.rows || scales.columns != 1)
                throw std::invalid_argument("the int8 weights " + name + " have no scale for each row");
            tensor.scales = scales.floats;
        }
        tensor.owner = owners;
        return tensor;
    };
    return {std::move(names), fetch};
}

// Appends the tokens of padded rows, without padding, and the length of each row.
void read_rows(const Ids& ids, int64_t padding, std::vector<int32_t>& tokens, std::vector<Index>& lengths) {
    for (size_t row = 0; row < ids.shape(0); ++row) {
        const size_t before = tokens.size();
        for (size_t column = 0; column < ids.shape(1); ++column)
            if (ids(row, column) != padding) tokens.push_back(narrowed(ids(row, column)));
        lengths.push_back(static_cast<Index>(tokens.size() - before));
    }
}

class Network {
    std::shared_ptr<const Transformer> network_;

public:
    Network(const Config& config, const nb::object& weights, const std::string& instructions) {
        WeightReader reader = reader_of(weights);
        network_ = std::make_shared<Transformer>(config, reader, instructions.c_str());
    }

    const char* instructions() const { return network_->kernels().name; }

    std::unique_ptr<StateOfBatch> start(const Ids& source) const {
        std::vector<int32_t> tokens;
        std::vector<Index> lengths;
        read_rows(source, network_->config().padding, tokens, lengths);
        nb::gil_scoped_release released;
        return std::make_unique<StateOfBatch>(StateOfBatch{network_, network_->start(tokens, lengths)});
    }

    void restrict(StateOfBatch& batch, Lists lists) const { network_->restrict(*batch.state, std::move(lists)); }

    // The result is a view of the state's own memory.
    nb::object step(nb::handle_t<StateOfBatch> owner, const Ids& tokens) const {
        StateOfBatch& batch = nb::cast<StateOfBatch&>(owner);
        State& state = *batch.state;
        std::vector<int32_t> newest;
        for (size_t row = 0; row < tokens.shape(0); ++row)
            for (size_t beam = 0; beam < tokens.shape(1); ++beam) newest.push_back(narrowed(tokens(row, beam)));
        if (static_cast<Index>(newest.size()) != state.rows() || newest.empty())
            throw std::invalid_argument("the state has " + std::to_string(state.rows()) + " rows, not " +
                                        std::to_string(newest.size()));
        const size_t width = static_cast<size_t>(network_->output_width(state));
        float* found;
        {
            nb::gil_scoped_release released;
            found = network_->log_probabilities(state, network_->advance(state, newest.data()));
        }
        const int64_t stride = padded(static_cast<Index>(width));
        return nb::cast(LogProbabilities(found, {tokens.shape(0), tokens.shape(1), width}, owner,
                                         {static_cast<int64_t>(tokens.shape(1)) * stride, stride, 1}),
                        nb::rv_policy::reference);
    }

    // Returns the rows one after the other.
    std::vector<float> attention(const std::vector<int32_t>& source, const std::vector<int32_t>& target, Index layer) const {
        nb::gil_scoped_release released;
        return network_->attention(source, target, layer);
    }

    void select(StateOfBatch& batch, const Sentences& sentences, const Ids& beams, int64_t width) const {
        std::vector<int32_t> parents;
        if (beams.shape(0) != sentences.shape(0)) throw std::invalid_argument("give each sentence its beams");
        for (size_t row = 0; row < beams.shape(0); ++row)
            for (size_t beam = 0; beam < beams.shape(1); ++beam) {
                if (beams(row, beam) < 0 || beams(row, beam) >= width) throw std::invalid_argument("there is no such beam");
                parents.push_back(narrowed(sentences(row) * width + beams(row, beam)));
            }
        network_->select(*batch.state, parents);
    }

    std::vector<std::vector<nb::tuple>> search(const Ids& source, const SearchConfig& config, std::vector<Index> limits,
                                               Lists prefixes, Lists lists, const Cancellation* cancellation) const {
        SearchRequest request{{}, {}, std::move(limits), std::move(prefixes), std::move(lists)};
        read_rows(source, network_->config().padding, request.tokens, request.lengths);
        std::vector<std::vector<Hypothesis>> found;
        {
            nb::gil_scoped_release released;
            found = beam_search(*network_, config, request, Poll(cancellation));
        }
        std::vector<std::vector<nb::tuple>> results;
        for (const auto& own : found) {
            std::vector<nb::tuple>& result = results.emplace_back();
            for (const Hypothesis& one : own) result.push_back(nb::make_tuple(one.tokens, one.log_probability));
        }
        return results;
    }
};

}  // namespace

NB_MODULE(_core, module) {
    // A daemon thread's frames are never freed at exit, nor the network that they hold: nanobind would report it as a
    // leak in a server's and a test's last lines. The sanitizers that run core_tests find real leaks.
    nb::set_leak_warnings(false);
    module.doc() = "Translation in C++ (the Transformer in int8 or float32, and beam search), and kernels for training.";
    nb::exception<NotNumbers>(module, "NotNumbers");
    nb::exception<Cancelled>(module, "Cancelled");
    nb::class_<Config>(module, "Config")
        .def(nb::init<>())
        .def_rw("vocabulary_size", &Config::vocabulary_size)
        .def_rw("source_vocabulary_size", &Config::source_vocabulary_size)
        .def_rw("d_model", &Config::d_model)
        .def_rw("d_ff", &Config::d_ff)
        .def_rw("heads", &Config::heads)
        .def_rw("d_k", &Config::d_k)
        .def_rw("d_v", &Config::d_v)
        .def_rw("encoder_layers", &Config::encoder_layers)
        .def_rw("decoder_layers", &Config::decoder_layers)
        .def_rw("has_source", &Config::has_source)
        .def_rw("is_pre_norm", &Config::is_pre_norm)
        .def_rw("has_final_norm", &Config::has_final_norm)
        .def_rw("embedding_norm", &Config::embedding_norm)
        .def_rw("is_recurrent", &Config::is_recurrent)
        .def_rw("attention_bias", &Config::attention_bias)
        .def_rw("output_bias", &Config::output_bias)
        .def_rw("start_from_zeros", &Config::start_from_zeros)
        .def_rw("norm_epsilon", &Config::norm_epsilon)
        .def_rw("embedding_factor", &Config::embedding_factor)
        .def_rw("query_factor", &Config::query_factor)
        .def_rw("first_position", &Config::first_position)
        .def_rw("learned_positions", &Config::learned_positions)
        .def_rw("padding", &Config::padding)
        .def_rw("start", &Config::start)
        .def("set_positions", [](Config& config, const std::string& name) { config.positions = positions_named(name); })
        .def("set_activation", [](Config& config, const std::string& name) { config.activation = activation_named(name); })
        .def("set_precision", [](Config& config, const std::string& name) { config.precision = precision_named(name); });
    nb::class_<SearchConfig>(module, "SearchConfig")
        .def(nb::init<>())
        .def_rw("beam", &SearchConfig::beam)
        .def_rw("alternatives", &SearchConfig::alternatives)
        .def_rw("minimum_length", &SearchConfig::minimum_length)
        .def_rw("length_penalty", &SearchConfig::length_penalty)
        .def_rw("stops_when_full", &SearchConfig::stops_when_full)
        .def_rw("start", &SearchConfig::start)
        .def_rw("end", &SearchConfig::end)
        .def_rw("never_generated", &SearchConfig::never_generated);
    nb::class_<Cancellation>(module, "Cancellation", "Ends searches from another thread.")
        .def(nb::init<>())
        .def("cancel", [](Cancellation& cancellation) { cancellation.is_set = true; });
    nb::class_<StateOfBatch>(module, "State", "The decoder's state of a batch of sentences.");
    nb::class_<Network>(module, "Network", "The Transformer with packed weights; several threads may use it at once.")
        .def(nb::init<const Config&, const nb::object&, const std::string&>(), "config"_a, "weights"_a, "instructions"_a = "",
             nb::sig("def __init__(self, config: Config, weights: collections.abc.Mapping[str, numpy.typing.NDArray[typing.Any]], "
                     "instructions: str = '') -> None"))
        .def_prop_ro("instructions", &Network::instructions)
        .def("start", &Network::start, "source"_a)
        .def("restrict", &Network::restrict, "state"_a, "lists"_a)
        .def("step", &Network::step, "state"_a, "tokens"_a,
             nb::sig("def step(self, state: State, tokens: numpy.typing.NDArray[numpy.int64]) -> "
                     "numpy.typing.NDArray[numpy.float32]"))
        .def("attention", &Network::attention, "source"_a, "target"_a, "layer"_a)
        .def("select", &Network::select, "state"_a, "sentences"_a, "beams"_a, "width"_a)
        .def("search", &Network::search, "source"_a, "config"_a, "limits"_a, "prefixes"_a, "lists"_a,
             "cancellation"_a.none(),
             nb::sig("def search(self, source: numpy.typing.NDArray[numpy.int64], config: SearchConfig, "
                     "limits: collections.abc.Sequence[int], prefixes: collections.abc.Sequence[collections.abc.Sequence[int]], "
                     "lists: collections.abc.Sequence[collections.abc.Sequence[int]], cancellation: Cancellation | None) -> "
                     "list[list[tuple[list[int], float]]]"));
    bind_training(module);
    module.def("available_instructions", [] {
        const char* names[8];
        const size_t count = available_kernels(names);
        return std::vector<std::string>(names, names + count);
    });
}
