// Large buffers that one batch no longer needs, for the next: the system clears fresh memory, page by page.
#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "buffer.h"

namespace transduce {

class Spares {
    static constexpr Index MOST = Index(1) << 25;  // floats that are kept: 128 MB
    static constexpr size_t MOST_BUFFERS = 256;
    std::mutex mutex_;  // never waited for, since a process may fork while another thread holds it
    std::vector<Buffer<float>> buffers_;  // the largest first
    Index kept_ = 0;

public:
    Spares() { buffers_.reserve(MOST_BUFFERS + 1); }
    // Returns a buffer of at least `size` floats with any content: the smallest spare one that has room, or a new one.
    Buffer<float> take(Index size) {
        Buffer<float> taken;
        if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
            const auto fits = [size](const Buffer<float>& own) { return own.size() >= size; };
            const auto end = std::partition_point(buffers_.begin(), buffers_.end(), fits);
            if (end != buffers_.begin()) {
                taken = std::move(end[-1]);
                kept_ -= taken.size();
                buffers_.erase(end - 1);
            }
        }
        taken.reserve(size);
        return taken;
    }
    // A state that ends calls it, so it allocates nothing.
    void keep(Buffer<float>&& buffer) {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || !buffer.size() || buffer.size() > MOST) return;
        kept_ += buffer.size();
        const auto is_larger = [](const Buffer<float>& one, const Buffer<float>& other) { return one.size() > other.size(); };
        buffers_.insert(std::upper_bound(buffers_.begin(), buffers_.end(), buffer, is_larger), std::move(buffer));
        for (; kept_ > MOST || buffers_.size() > MOST_BUFFERS; buffers_.pop_back()) kept_ -= buffers_.back().size();  // the smallest fit least often
    }
};

}  // namespace transduce
