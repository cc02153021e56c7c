#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cost/calibration.hpp"
#include "runtime/system.hpp"

namespace turnout {

// Calibration of a device that isn't the host: what it does is timed through the backend contract,
// by its own events, so the same code measures every vendor's and an emulated one. Points:
//
//   launch            a kernel of 16 elements, one of many in a row
//   synchronize       the host's wait for a stream with nothing to do (wall time)
//   h2d, d2h          a copy of `size` bytes from or to pinned memory; "... pageable": ordinary
//                     memory; "... during X": X (h2d, d2h, product, host product) going on
//   stream            one elementwise pass that touches `size` bytes
//   product f32 ...   a square product of `size` rows in that type

/// Fingerprint of a device: what has to be the same for figures to hold.
std::string device_key(const DeviceInfo& info);

/// Largest sizes that are measured.
struct ProbeLimits {
  std::int64_t copy_bytes = std::int64_t{256} << 20;
  std::int64_t stream_bytes = std::int64_t{512} << 20;
  std::int64_t product_rows = 8192;
};

/// Points of the quick probe, and of the full calibration: the quick ones and more.
std::vector<ProbePoint> quick_points(const ProbeLimits& limits = {});
std::vector<ProbePoint> full_points(const ProbeLimits& limits = {});

/// measure_points() on a device. Blocks. Error invalid_argument for the host.
DeviceCalibration probe_device(const DeviceSlot& slot, std::span<const ProbePoint> points,
                               DeviceCalibration known, const ProbeOptions& options);

/// The device's figures with those that were measured put in, as `calibrated`: they are attained
/// rates, which the time model takes as they are.
DeviceInfo calibrated_info(const DeviceInfo& info, const DeviceCalibration& calibration);

/// Gives `label`'s device its calibrated figures in this system: those kept, else those of a quick
/// probe of about 3 seconds (more where the first points alone take longer), which are kept.
/// Nothing for the host and for virtual devices. Returns a line that says what was done; empty:
/// nothing. `points` are those of the quick probe.
std::string use_calibration(System& system, std::string_view label,
                            std::span<const ProbePoint> points = quick_points());

}  // namespace turnout
