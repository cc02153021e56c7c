#pragma once

#include <hip/hip_runtime.h>

#include "backends/gpu/vendor/types.hpp"

// The names of host.hpp over the HIP runtime (5.7 or newer).
#define TURNOUT_VENDOR(name) hip##name

namespace turnout::gpu::vendor {

/// Word before a device's number in its name.
inline constexpr const char* kName = "hip";
inline constexpr hipError_t kUncorrectable = hipErrorECCNotCorrectable;
// The one name that isn't the other runtime's with another prefix.
inline constexpr hipError_t hipErrorMemoryAllocation = hipErrorOutOfMemory;

/// Figures that the driver gives. Rates and the link are for calibration to find.
inline DeviceInfo describe(int index) {
  const auto figure = [](double value, const char* source) {
    return Figure{value, Evidence::spec, source};
  };
  hipDeviceProp_t properties{};
  if (hipGetDeviceProperties(&properties, index) != hipSuccess) (void)hipGetLastError();
  DeviceInfo info;
  info.name = std::to_string(index);
  info.title = std::string(properties.name) + " (" + properties.gcnArchName + ")";
  info.vendor = "AMD";
  info.compute_units = properties.multiProcessorCount;
  info.memory_bytes = figure(static_cast<double>(properties.totalGlobalMem), "the driver");
  info.l2_bytes = figure(static_cast<double>(properties.l2CacheSize), "the driver");
  info.clock_hz = figure(1e3 * properties.clockRate, "the driver: highest clock");
  const double bandwidth = 2e3 * properties.memoryClockRate * (properties.memoryBusWidth / 8.0);
  if (bandwidth > 0) {
    info.memory_bytes_per_s = figure(bandwidth, "the driver: memory clock, two transfers a clock");
  }
  return info;
}

inline hipError_t allocate_pinned_status(void** address, std::size_t bytes) {
  return hipHostMalloc(address, bytes, hipHostMallocDefault);
}
inline void free_pinned(void* address) { (void)hipHostFree(address); }

}  // namespace turnout::gpu::vendor

#include "backends/gpu/vendor/runtime.hpp"
