#pragma once

#include <cuda_runtime.h>

#include "backends/gpu/vendor/types.hpp"

// The names of host.hpp over the CUDA runtime (11.4 or newer).
#define TURNOUT_VENDOR(name) cuda##name

namespace turnout::gpu::vendor {

/// Word before a device's number in its name.
inline constexpr const char* kName = "cuda";
inline constexpr cudaError_t kUncorrectable = cudaErrorECCUncorrectable;

/// Figures that the driver gives. Rates and the link are for calibration to find.
inline DeviceInfo describe(int index) {
  const auto figure = [](double value, const char* source) {
    return Figure{value, Evidence::spec, source};
  };
  const auto attribute = [index](cudaDeviceAttr which) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, index) != cudaSuccess) (void)cudaGetLastError();
    return value;
  };
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) (void)cudaGetLastError();
  DeviceInfo info;
  info.name = std::to_string(index);
  info.title = properties.name;
  info.vendor = "NVIDIA";
  info.compute_units = properties.multiProcessorCount;
  info.memory_bytes = figure(static_cast<double>(properties.totalGlobalMem), "the driver");
  info.l2_bytes = figure(static_cast<double>(properties.l2CacheSize), "the driver");
  info.clock_hz = figure(1e3 * attribute(cudaDevAttrClockRate), "the driver: highest clock");
  const double memory_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate);
  const double bus_bytes = attribute(cudaDevAttrGlobalMemoryBusWidth) / 8.0;
  if (memory_hz * bus_bytes > 0) {
    info.memory_bytes_per_s =
        figure(2 * memory_hz * bus_bytes, "the driver: memory clock, two transfers a clock");
  }
  return info;
}

inline cudaError_t allocate_pinned_status(void** address, std::size_t bytes) {
  return cudaMallocHost(address, bytes);
}
inline void free_pinned(void* address) { (void)cudaFreeHost(address); }

}  // namespace turnout::gpu::vendor

#include "backends/gpu/vendor/runtime.hpp"
