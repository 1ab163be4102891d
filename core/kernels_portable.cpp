#include "vector_portable.h"
#include "kernel_bodies.h"

namespace transduce {
extern const Kernels portable_kernels;
const Kernels portable_kernels = table("portable");
}  // namespace transduce
