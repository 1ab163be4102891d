#include "vector_neon.h"
#include "kernel_bodies.h"

namespace transduce {
extern const Kernels neon_dot_kernels;
const Kernels neon_dot_kernels = table("neon_dot");
}  // namespace transduce
