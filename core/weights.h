// The weights of a model as Python passes them: float32, or int8 with a scale per row, by the names of model/.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels.h"

namespace transduce {

struct Tensor {
    const float* floats = nullptr;
    const int8_t* bytes = nullptr;  // instead of floats
    const float* scales = nullptr;  // of the rows of bytes
    Index rows = 0, columns = 1;    // a vector has one column
    std::shared_ptr<const void> owner{};
};

// Fetches each tensor by its name when it is needed, checks its shape, and notes which were read.
class WeightReader {
    std::set<std::string> names_, read_;
    std::function<Tensor(const std::string&)> fetch_;

public:
    WeightReader(std::set<std::string> names, std::function<Tensor(const std::string&)> fetch)
        : names_(std::move(names)), fetch_(std::move(fetch)) {}

    bool has(const std::string& name) const { return names_.count(name) > 0; }

    Tensor matrix(const std::string& name, Index rows, Index columns) {
        if (!has(name)) throw std::invalid_argument("the weights " + name + " are missing");
        const Tensor tensor = fetch_(name);
        if (tensor.rows != rows || tensor.columns != columns)
            throw std::invalid_argument("the weights " + name + " have the shape (" + std::to_string(tensor.rows) + ", " +
                                        std::to_string(tensor.columns) + "), not (" + std::to_string(rows) + ", " +
                                        std::to_string(columns) + ")");
        read_.insert(name);
        return tensor;
    }

    std::vector<float> vector(const std::string& name, Index size) {
        const Tensor tensor = matrix(name, size, 1);
        if (!tensor.floats) throw std::invalid_argument("the weights " + name + " must be float32");
        return {tensor.floats, tensor.floats + size};
    }

    // Throws if a tensor was not read: it belongs to an option that the core does not implement.
    void refuse_unread() const {
        for (const std::string& name : names_)
            if (!read_.count(name)) throw std::invalid_argument("the weights " + name + " have no place in this network");
    }
};

}  // namespace transduce
