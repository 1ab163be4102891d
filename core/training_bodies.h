// The kernels of training.h over 16 lanes; kernel_bodies.h includes this file.
#pragma once
#include "training.h"

namespace {

// A step of 16 numbers, or the rest of a row. A rest is read as if zeros followed it.
struct Whole {};
struct Rest { Index count; };

inline Lanes read(const float* x, Whole) { return load(x); }
inline Lanes read(const BFloat16* x, Whole) { return load_bfloat16(x); }
inline Lanes read(const int16_t* x, Whole) { return load_int16(x); }
inline void write(float* x, Lanes a, Whole) { store(x, a); }
inline void write(BFloat16* x, Lanes a, Whole) { store_bfloat16(x, a); }
inline Lanes only(Lanes a, Lanes, Whole) { return a; }

template <class Number>
inline Lanes read(const Number* x, Rest rest) { return load_rest(x, (long)rest.count); }
template <class Number>
inline void write(Number* x, Lanes a, Rest rest) { store_rest(x, a, (long)rest.count); }
// Returns `a` with `other` in the lanes beyond the row.
inline Lanes only(Lanes a, Lanes other, Rest rest) {
    static const float lane[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return where_less(load(lane), all((float)rest.count), a, other);
}

template <class Function>
inline void in_steps(Index width, Function function) {
    Index i = 0;
    for (; i + LANES <= width; i += LANES) function(i, Whole{});
    if (i < width) function(i, Rest{width - i});
}

inline void write_zeros(BFloat16* x, Index count) {
    in_steps(count, [&](Index i, auto step) { write(x + i, all(0.0f), step); });
}

// e^x for x ≤ 0, as `exponentials` but for e^-87 below -87.
inline Lanes shrinking_exponentials(Lanes x) {
    const Lanes shift = all(12582912.0f), bounded = larger(all(-87.0f), x);
    const Lanes shifted = multiply_add(bounded, all(1.44269504f), shift);
    return times_power_of_two(power_of_fraction(bounded, shifted - shift), shifted);
}

// Writes e^(scale (x - largest x)) to `powers`, which has room for whole steps; returns their sum, and the largest x.
inline float powers_of(const BFloat16* x, Index width, float scale, float* powers, float* highest) {
    Lanes most = all(-INFINITY), total = all(0.0f);
    in_steps(width, [&](Index i, auto step) { most = larger(most, only(read(x + i, step), all(-INFINITY), step)); });
    *highest = largest(most);
    in_steps(width, [&](Index i, auto step) {
        const Lanes power = shrinking_exponentials((read(x + i, step) - all(*highest)) * all(scale));
        store(powers + i, power);
        total = total + only(power, all(0.0f), step);
    });
    return sum(total);
}

inline void write_shares(const float* powers, float total, BFloat16* x, Index width) {
    const Lanes share = all(1.0f / total);
    in_steps(width, [&](Index i, auto step) { write(x + i, load(powers + i) * share, step); });
}

void label_gradients(const LabelGradients& job) {
    for (Index row = 0; row < job.labels; ++row) {
        BFloat16* z = job.logits + row * job.width;
        BFloat16* right = z + job.label[row];
        float* found = job.statistics + 3 * row;
        found[0] = sum(read(right, Rest{1}));
        found[2] = powers_of(z, job.width, 1.0f, job.room, found + 1);
        write_shares(job.room, found[2], z, job.width);
        write(right, all(job.room[job.label[row]] * (1.0f / found[2]) + job.extra), Rest{1});
    }
    write_zeros(job.logits + job.labels * job.width, (job.rows - job.labels) * job.width);
}

void attention_weights(const AttentionWeights& job) {
    BFloat16* row = job.scores;
    float highest;
    for (Index n = 0; n < job.sentences * job.heads; ++n) {
        const Index keys = (Index)job.keys_of[n / job.heads], queries = (Index)job.queries_of[n / job.heads];
        for (Index query = 0; query < job.queries; ++query, row += job.keys) {
            const Index visible = query >= queries ? 0 : job.is_causal ? query + 1 : keys;
            if (visible) write_shares(job.room, powers_of(row, visible, job.scale, job.room, &highest), row, visible);
            write_zeros(row + visible, job.keys - visible);
        }
    }
}

void attention_gradient(BFloat16* gradient, const BFloat16* weights, Index rows, Index keys, float scale) {
    for (Index row = 0; row < rows; ++row, gradient += keys, weights += keys) {
        Lanes total = all(0.0f);
        in_steps(keys, [&](Index i, auto step) {
            total = multiply_add(read(weights + i, step), read(gradient + i, step), total);
        });
        const Lanes mean = all(sum(total)), factor = all(scale);
        in_steps(keys, [&](Index i, auto step) {
            write(gradient + i, read(weights + i, step) * (read(gradient + i, step) - mean) * factor, step);
        });
    }
}

void add_and_norm(const AddAndNorm& job) {
    const Lanes threshold = all(job.threshold), scale = all(job.scale), zero = all(0.0f);
    for (Index row = 0, at = 0; row < job.rows; ++row, at += job.width) {
        Lanes total = zero, squares = zero;
        in_steps(job.width, [&](Index i, auto step) {
            const Lanes branch = read(job.branch + at + i, step) * scale;
            const Lanes kept = where_less(read(job.words + at + i, step), threshold, zero, branch);
            write(job.sums + at + i, read(job.x + at + i, step) + kept, step);
            total = total + read(job.sums + at + i, step);
        });
        const float mean = sum(total) / (float)job.width;
        in_steps(job.width, [&](Index i, auto step) {
            const Lanes difference = only(read(job.sums + at + i, step) - all(mean), zero, step);
            squares = multiply_add(difference, difference, squares);
        });
        const float inverse = 1.0f / sqrtf(sum(squares) / (float)job.width + job.epsilon);
        in_steps(job.width, [&](Index i, auto step) {
            const Lanes normal = (read(job.sums + at + i, step) - all(mean)) * all(inverse);
            write(job.y + at + i, multiply_add(normal, read(job.gain + i, step), read(job.bias + i, step)), step);
        });
        job.statistics[2 * row] = mean;
        job.statistics[2 * row + 1] = inverse;
    }
}

void norm_gradient(const NormGradient& job) {
    const Lanes threshold = all(job.threshold), scale = all(job.scale), zero = all(0.0f);
    for (Index row = 0, at = 0; row < job.rows; ++row, at += job.width) {
        const Lanes mean = all(job.statistics[2 * row]), inverse = all(job.statistics[2 * row + 1]);
        Lanes total = zero, product = zero;
        in_steps(job.width, [&](Index i, auto step) {
            const Lanes here = read(job.gradient + at + i, step);
            const Lanes normal = (read(job.sums + at + i, step) - mean) * inverse;
            write(job.to_gain + i, multiply_add(here, normal, read(job.to_gain + i, step)), step);
            write(job.to_bias + i, read(job.to_bias + i, step) + here, step);
            const Lanes scaled = here * read(job.gain + i, step);
            total = total + scaled;
            product = multiply_add(scaled, normal, product);
        });
        const Lanes mean_total = all(sum(total) / (float)job.width), mean_product = all(sum(product) / (float)job.width);
        in_steps(job.width, [&](Index i, auto step) {
            const Lanes scaled = read(job.gradient + at + i, step) * read(job.gain + i, step);
            const Lanes normal = (read(job.sums + at + i, step) - mean) * inverse;
            write(job.to_sum + at + i, (scaled - mean_total - normal * mean_product) * inverse, step);
            const Lanes branch = read(job.to_sum + at + i, step) * scale;
            write(job.to_branch + at + i, where_less(read(job.words + at + i, step), threshold, zero, branch), step);
        });
    }
}

void add_to(float* total, const BFloat16* addend, Index count) {
    in_steps(count, [&](Index i, auto step) { write(total + i, read(total + i, step) + read(addend + i, step), step); });
}

void add_sum_of_rows(const BFloat16* matrix, float* total, Index rows, Index width) {
    for (Index row = 0; row < rows; row += 4, matrix += 4 * width)  // four at once: fewer passes over the total
        in_steps(width, [&](Index i, auto step) {
            Lanes sums = read(total + i, step);
            for (Index at = i; at < i + width * (rows - row < 4 ? rows - row : 4); at += width)
                sums = sums + read(matrix + at, step);
            write(total + i, sums, step);
        });
}

void relu_gradient(BFloat16* gradient, const BFloat16* output, float* total, Index rows, Index width) {
    const Lanes zero = all(0.0f);
    for (Index row = 0; row < rows; ++row, gradient += width, output += width)
        in_steps(width, [&](Index i, auto step) {
            const Lanes kept = where_less(zero, read(output + i, step), read(gradient + i, step), zero);
            write(gradient + i, kept, step);
            write(total + i, read(total + i, step) + kept, step);
        });
}

constexpr TrainingKernels training_table() {
    return {label_gradients, attention_weights, attention_gradient, add_and_norm,
            norm_gradient,   add_to,            add_sum_of_rows,    relu_gradient};
}

}  // namespace
