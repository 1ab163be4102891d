#include "vector_avx512.h"
#include "kernel_bodies.h"

namespace transduce {
extern const Kernels avx512_vnni_kernels;
const Kernels avx512_vnni_kernels = table("avx512_vnni");
}  // namespace transduce
