#include "backends/gpu/kernels.hpp"

#include "backends/kokkos/device_space.hpp"
#include "backends/kokkos/mode.hpp"

namespace turnout::gpu {

#if TURNOUT_KOKKOS_DEVICE

void start_kernels(int device_index) { kokkos::initialise(device_index); }
void forget_stream(void* native_handle) { kokkos::release_stream(native_handle); }
void check_kernels(void* native_handle) { kokkos::throw_faults(native_handle); }

#else

void start_kernels(int) {}
void forget_stream(void*) {}
void check_kernels(void*) {}

#endif

}  // namespace turnout::gpu
