#include "vector_avx2.h"
#include "kernel_bodies.h"

namespace transduce {
extern const Kernels avx2_kernels;
const Kernels avx2_kernels = table("avx2");
}  // namespace transduce
