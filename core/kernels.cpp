#include "kernels.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined(__x86_64__) || defined(_M_X64)
#define IS_X86
#ifdef _MSC_VER
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace transduce {

extern const Kernels portable_kernels;

#ifdef IS_X86
extern const Kernels avx512_vnni_kernels, avx_vnni_kernels, avx2_kernels;

namespace {

// Bits of cpuid's leaves 1 and 7, and the registers that the operating system saves (xgetbv).
struct Processor {
    unsigned leaf1[4] = {}, leaf7[4] = {}, leaf7_1[4] = {}, saved = 0;

    Processor() {
        query(1, 0, leaf1);
        query(7, 0, leaf7);
        if (leaf7[0] >= 1) query(7, 1, leaf7_1);
        if (!(leaf1[2] >> 27 & 1)) return;
#ifdef _MSC_VER
        saved = static_cast<unsigned>(_xgetbv(0));
#else
        unsigned high;
        __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
#endif
    }
    static void query(unsigned leaf, unsigned part, unsigned found[4]) {
#ifdef _MSC_VER
        __cpuidex(reinterpret_cast<int*>(found), static_cast<int>(leaf), static_cast<int>(part));
#else
        __get_cpuid_count(leaf, part, found, found + 1, found + 2, found + 3);
#endif
    }
    bool has_avx2() const {
        return (saved & 6) == 6 && (leaf7[1] >> 5 & 1) && (leaf1[2] >> 12 & 1);  // AVX2 and FMA
    }
    bool has_avx_vnni() const { return has_avx2() && (leaf7_1[0] >> 4 & 1); }
    bool has_avx512_vnni() const {  // F, DQ, BW, VL and VNNI
        return has_avx2() && (saved & 0xe6) == 0xe6 && (leaf7[1] >> 16 & 1) && (leaf7[1] >> 17 & 1) &&
               (leaf7[1] >> 30 & 1) && (leaf7[1] >> 31 & 1) && (leaf7[2] >> 11 & 1);
    }
};

size_t available(const Kernels* found[8]) {
    const Processor processor;
    size_t count = 0;
    if (processor.has_avx512_vnni()) found[count++] = &avx512_vnni_kernels;
    if (processor.has_avx_vnni()) found[count++] = &avx_vnni_kernels;
    if (processor.has_avx2()) found[count++] = &avx2_kernels;
    found[count++] = &portable_kernels;
    return count;
}

}  // namespace
#elif defined(__aarch64__) || defined(_M_ARM64)
extern const Kernels neon_kernels, neon_dot_kernels;

namespace {

size_t available(const Kernels* found[8]) {
    size_t count = 0;
#if defined(__linux__)
    const bool has_dot = getauxval(AT_HWCAP) >> 20 & 1;  // HWCAP_ASIMDDP
#else
    const bool has_dot = true;  // assumed of Apple's processors and of those that run Windows
#endif
    if (has_dot) found[count++] = &neon_dot_kernels;
    found[count++] = &neon_kernels;
    found[count++] = &portable_kernels;
    return count;
}

}  // namespace
#else
namespace {

size_t available(const Kernels* found[8]) {
    found[0] = &portable_kernels;
    return 1;
}

}  // namespace
#endif

size_t available_kernels(const char* names[8]) {
    const Kernels* found[8];
    const size_t count = available(found);
    for (size_t i = 0; i < count; ++i) names[i] = found[i]->name;
    return count;
}

const Kernels& choose_kernels(const char* name) {
    const Kernels* found[8];
    const size_t count = available(found);
    const char* forced = std::getenv("TRANSDUCE_INSTRUCTIONS");
    if (!*name && forced) name = forced;
    if (!*name) return *found[0];
    std::string known;
    for (size_t i = 0; i < count; ++i) {
        if (!std::strcmp(found[i]->name, name)) return *found[i];
        known += (i ? ", " : "") + std::string(found[i]->name);
    }
    throw std::invalid_argument("there are no instructions " + std::string(name) + " here; this processor has " + known);
}

}  // namespace transduce
