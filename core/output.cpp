#include "output.h"

#include <algorithm>
#include <cmath>

namespace transduce {

void LogSum::add(const Kernels& kernels, const float* logits, Index width) {
    const float found = kernels.largest(logits, width);
    if (!(found <= largest_)) {  // also if it is NaN
        sum_ *= kernels.exponential(largest_ - found);
        largest_ = found;
    }
    sum_ += kernels.sum_of_exponentials(logits, width, largest_);
}

float LogSum::value() const {
    const double value = static_cast<double>(largest_) + std::log(static_cast<double>(sum_));
    if (!std::isfinite(value)) throw NotNumbers();
    return static_cast<float>(value);
}

void log_softmax(const Kernels& kernels, float* logits, Index count, Index stride) {
    for (Index row = 0; row < count; ++row, logits += stride) {
        LogSum sum;
        for (Index first = 0; first < stride; first += CHUNK)
            sum.add(kernels, logits + first, std::min(CHUNK, stride - first));
        kernels.subtract(logits, stride, sum.value());
    }
}

void find_best(const Kernels& kernels, const Linear& output, const Input& rows, const Allowed* allowed, Index count,
               Buffer<float>& room, BestTokens* best) {
    const Index total = rows.floats.count;
    std::vector<LogSum> sums(total);
    for (Index row = 0; row < total; ++row) {
        best[row].logits.assign(count, -INFINITY);
        best[row].tokens.assign(count, -1);
    }
    room.reserve(total * CHUNK);
    for (Index first = 0; first < output.outputs(); first += CHUNK) {
        const Index width = std::min(CHUNK, output.outputs() - first);
        output.apply_blocks(kernels, rows, first / LANES, (first + width) / LANES, {room.data(), CHUNK, false});
        for (Index row = 0; row < total; ++row) {
            float* logits = room.data() + row * CHUNK;
            sums[row].add(kernels, logits, width);
            const int32_t forced = allowed[row].forced;
            if (forced >= 0) {
                if (forced >= first && forced < first + width) best[row].logits[0] = logits[forced - first];
                continue;
            }
            for (const int32_t token : *allowed[row].forbidden)
                if (token >= first && token < first + width) logits[token - first] = -INFINITY;
            kernels.keep_best(logits, width, first, {best[row].logits.data(), best[row].tokens.data(), count});
        }
    }
    for (Index row = 0; row < total; ++row) {
        best[row].log_sum = sums[row].value();
        if (allowed[row].forced >= 0) best[row].tokens[0] = allowed[row].forced;
    }
}

}  // namespace transduce
