#include "vector_neon.h"
#include "kernel_bodies.h"

namespace transduce {
extern const Kernels neon_kernels;
const Kernels neon_kernels = table("neon");
}  // namespace transduce
