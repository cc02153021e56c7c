#include "core/backend.hpp"

namespace turnout {

void register_openblas_kernels(KernelRegistry&) {}

}  // namespace turnout
