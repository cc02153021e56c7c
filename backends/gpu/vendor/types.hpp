#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/device.hpp"

// Types that every vendor header shares.
namespace turnout::gpu::vendor {

enum class Direction { upload, download, inside, on_host };

/// Emulated drivers alone read these.
struct DriverOptions {
  /// One thread a stream does its work, as on hardware. Otherwise work is done by the thread that
  /// synchronizes, and no earlier: a reader that doesn't wait for its writer finds poison.
  bool threads = false;
  /// The devices that find_devices() reports.
  std::vector<DeviceInfo> devices;
};

/// What the driver says is there.
struct Found {
  std::vector<DeviceInfo>
      devices;           ///< named "0", "1", ...: the caller puts the backend's name before
  std::string why_none;  ///< when there is none
};

}  // namespace turnout::gpu::vendor
