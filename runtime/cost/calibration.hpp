#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cost/sampling.hpp"

namespace turnout {

/// One thing that is timed on a device: `what` is done with work of this size. The names are those
/// of device_probe.hpp and cpu_probe.hpp.
struct ProbePoint {
  std::string what;
  std::int64_t size = 0;
  friend bool operator==(const ProbePoint&, const ProbePoint&) = default;
};

struct MeasuredPoint {
  ProbePoint point;
  Sample sample;
  /// Of the host's clock, for one sample, with its share of the set-up. An emulated device's own
  /// clock says nothing of that.
  double wall_seconds = 0;
};

/// Latency and rate of copies in one direction: seconds = latency + bytes / rate, by least squares
/// of the relative errors.
struct TransferFit {
  double latency_seconds = 0;
  double bytes_per_s = 0;
  double worst_error = 0;  ///< relative, over the points
  int points = 0;          ///< 0: nothing was measured
};

/// Everything that was measured of one device on one machine.
struct DeviceCalibration {
  std::string device;  ///< "cuda:0"
  std::string key;     ///< fingerprint: figures of another one don't count
  std::vector<MeasuredPoint> points;
  std::vector<std::string> refused;  ///< points that can't be measured there, with the reason

  const MeasuredPoint* find(const ProbePoint& point) const;
  /// Fit of the points called `what`: "h2d", "h2d pageable", ...
  TransferFit transfer(std::string_view what) const;
  /// Highest rate over the points of this name: bytes/s of "stream", flop/s of "product f32".
  std::optional<double> best_rate(std::string_view what) const;
  int noisy() const;     ///< points whose samples spread more than Sample::kNoisy
  int rejected() const;  ///< samples that were put aside
  /// How long measuring this point will take by what points of its name with less work took; 0
  /// where none was measured.
  double expected_seconds(const ProbePoint& point) const;
};

/// Times one point. Error unsupported or out_of_memory where the device can't do it.
using PointTimer = std::function<Sample(const ProbePoint& point, double budget_seconds)>;

struct ProbeOptions {
  /// Wall time. The first point of every name is measured whatever it takes, so that no figure is
  /// missing for a slow device; others that the time left isn't expected to suffice for stay
  /// unmeasured.
  double budget_seconds = 3;
  /// Called before each point with the share of points done; false: stop here.
  std::function<bool(double share, const ProbePoint& next)> progress{};
  /// Called after each point, to keep it.
  std::function<void(const DeviceCalibration&)> keep{};
};

/// Measures those of `points` that `known` lacks, the first of every name before the others, and
/// returns both; what is refused is noted. Other errors are thrown after what was measured was
/// given to `keep`.
DeviceCalibration measure_points(std::span<const ProbePoint> points, const PointTimer& timer,
                                 DeviceCalibration known, const ProbeOptions& options);
/// How many of `points` are neither measured nor refused, leaving out those that aren't expected
/// to fit into a budget.
std::size_t missing_points(const DeviceCalibration& calibration, std::span<const ProbePoint> points,
                           double budget_seconds = std::numeric_limits<double>::infinity());

/// The text of a calibration file. Files are hostile: parse_calibration() throws Error
/// invalid_argument that names `where`.
std::string to_json(const DeviceCalibration& calibration);
DeviceCalibration parse_calibration(std::string_view json, std::string_view where);

/// Folder of kept calibrations: $TURNOUT_CACHE, else $XDG_CACHE_HOME/turnout, else
/// ~/.cache/turnout. Empty when there is no home.
std::string cache_folder();
/// Where that of a fingerprint is kept; empty without a cache folder.
std::string calibration_path(std::string_view key);
/// The one kept there, or none (also when the file is damaged or of another fingerprint).
std::optional<DeviceCalibration> kept_calibration(const std::string& key);
/// Writes it, whole or not at all. False when it can't be written.
bool keep_calibration(const DeviceCalibration& calibration);

}  // namespace turnout
