// The part of transduce.core._core that training calls: the kernels of training.h, with addresses of torch's tensors.
#include <nanobind/nanobind.h>

#include "buffer.h"
#include "training.h"

namespace nb = nanobind;
using namespace transduce;

namespace {

using Address = std::uintptr_t;

template <class T>
T* at(Address address) {
    return reinterpret_cast<T*>(address);
}

const TrainingKernels& kernels() {
    static const TrainingKernels& chosen = *choose_kernels("").training;
    return chosen;
}

void label_gradients(Address logits, Address label, Address statistics, Index labels, Index rows, Index width, float extra) {
    Buffer<float> room(padded(width));
    kernels().label_gradients({at<BFloat16>(logits), at<int64_t>(label), at<float>(statistics), room.data(), labels, rows,
                               width, extra});
}

void attention_weights(Address scores, Address keys_of, Address queries_of, Index sentences, Index heads, Index queries,
                       Index keys, bool is_causal, float scale) {
    Buffer<float> room(padded(keys));
    kernels().attention_weights({at<BFloat16>(scores), at<int64_t>(keys_of), at<int64_t>(queries_of), room.data(),
                                 sentences, heads, queries, keys, is_causal, scale});
}

void attention_gradient(Address gradient, Address weights, Index rows, Index keys, float scale) {
    kernels().attention_gradient(at<BFloat16>(gradient), at<BFloat16>(weights), rows, keys, scale);
}

void add_and_norm(Address x, Address branch, Address words, Address gain, Address bias, Address sums, Address y,
                  Address statistics, Index rows, Index width, float threshold, float scale, float epsilon) {
    kernels().add_and_norm({at<BFloat16>(x), at<BFloat16>(branch), at<int16_t>(words), at<float>(gain), at<float>(bias),
                            at<BFloat16>(sums), at<BFloat16>(y), at<float>(statistics), rows, width, threshold, scale,
                            epsilon});
}

void norm_gradient(Address gradient, Address sums, Address words, Address gain, Address statistics, Address to_sum,
                   Address to_branch, Address to_gain, Address to_bias, Index rows, Index width, float threshold,
                   float scale) {
    kernels().norm_gradient({at<BFloat16>(gradient), at<BFloat16>(sums), at<int16_t>(words), at<float>(gain),
                             at<float>(statistics), at<BFloat16>(to_sum), at<BFloat16>(to_branch), at<float>(to_gain),
                             at<float>(to_bias), rows, width, threshold, scale});
}

void add_to(Address total, Address addend, Index count) {
    kernels().add_to(at<float>(total), at<BFloat16>(addend), count);
}

void add_sum_of_rows(Address matrix, Address total, Index rows, Index width) {
    kernels().add_sum_of_rows(at<BFloat16>(matrix), at<float>(total), rows, width);
}

void relu_gradient(Address gradient, Address output, Address total, Index rows, Index width) {
    kernels().relu_gradient(at<BFloat16>(gradient), at<BFloat16>(output), at<float>(total), rows, width);
}

}  // namespace

void bind_training(nb::module_& module) {
    const auto unlocked = nb::call_guard<nb::gil_scoped_release>();
    module.def("label_gradients", label_gradients, unlocked);
    module.def("attention_weights", attention_weights, unlocked);
    module.def("attention_gradient", attention_gradient, unlocked);
    module.def("add_and_norm", add_and_norm, unlocked);
    module.def("norm_gradient", norm_gradient, unlocked);
    module.def("add_to", add_to, unlocked);
    module.def("add_sum_of_rows", add_sum_of_rows, unlocked);
    module.def("relu_gradient", relu_gradient, unlocked);
}
