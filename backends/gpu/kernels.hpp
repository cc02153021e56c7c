#pragma once

// What a device has to do around its kernels: Kokkos of the same library runs them. Nothing where
// they are compiled for the host (backends/kokkos/mode.hpp).
namespace turnout::gpu {

/// Before the first kernel of a device is prepared.
void start_kernels(int device_index);
/// Before a stream is destroyed; its work is done.
void forget_stream(void* native_handle);
/// After a stream was waited for: throws what its kernels found wrong.
void check_kernels(void* native_handle);

}  // namespace turnout::gpu
