// The products of vector_avx2.h through AVX-VNNI; core_tests compares it with the others where the processor has it.
#include "vector_avx2.h"
#include "kernel_bodies.h"

namespace transduce {
extern const Kernels avx_vnni_kernels;
const Kernels avx_vnni_kernels = table("avx_vnni");
}  // namespace transduce
