#pragma once

#include <cstdint>

namespace turnout::gpu {

/// Faults to inject into an emulated device. Counts start when they are set.
struct Faults {
  /// Allocations of device memory that still succeed before one fails; -1: none fails. The one that
  /// fails is out_of_memory; later ones succeed again.
  std::int64_t fail_allocation = -1;
  /// Device memory is refused until cached blocks are given back (GpuDevice does so, and asks
  /// again).
  bool refuse_until_trim = false;
  /// Copies between host and device take this many times as long on the device's clock.
  double link_slowdown = 1;
  /// Launches that still run before the device is lost; -1: it isn't. Everything after fails with
  /// device_lost until faults are set again.
  std::int64_t lose_device_after = -1;
  /// Waiting for a stream of this device first runs all other streams, those of other devices too,
  /// as far as they go without it. A writer that should wait for a reader shows up this way; a
  /// reader that should wait for a writer shows up the usual way.
  bool others_first = false;
};

}  // namespace turnout::gpu
