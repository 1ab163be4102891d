// An aligned array that can grow; growing discards its content.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include "kernels.h"

namespace transduce {

template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);
    struct Free {
        void operator()(T* memory) const { ::operator delete(memory, std::align_val_t(64)); }
    };
    std::unique_ptr<T, Free> memory_;
    Index size_ = 0;

public:
    Buffer() = default;
    explicit Buffer(Index size, T value = {}) {
        reserve(size);
        std::fill_n(data(), size, value);
    }
    // Makes room for `size` elements; if the array must grow, its content is lost.
    T* reserve(Index size) {
        if (size > size_) {
            memory_.reset(static_cast<T*>(::operator new(static_cast<size_t>(size) * sizeof(T), std::align_val_t(64))));
            size_ = size;
        }
        return data();
    }
    T* data() { return memory_.get(); }
    const T* data() const { return memory_.get(); }
    Index size() const { return size_; }
    T& operator[](Index place) { return memory_.get()[place]; }
    const T& operator[](Index place) const { return memory_.get()[place]; }
};

}  // namespace transduce
