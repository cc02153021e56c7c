#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/gpu_model/similarity.hpp"

namespace turnout::gpu_model {

/// One shape as a calibration sees it. `sensitivities`: d log(time) / d log(parameter) for each
/// fitted parameter of the model there, the same count for all shapes of an op.
struct CalibrationPoint {
  Features features;
  std::vector<double> sensitivities;
};

/// The model's error on one device, log(time / model's time), learned from a few measurements of
/// it. Gaussian process regression in two steps, each op by itself:
///
/// 1. What shapes share: the op's level, the pass's, the kind's, and the device's own values of the
///    parameters, which act through the sensitivities. Covariance
///    level^2 + pass^2 [same pass] + kind^2 [same pass and kind] + parameter^2 <s(a), s(b)>.
///    Measurements far off what the others say count less (reweighted, Cauchy-like).
/// 2. What is left, carried to shapes nearby: near^2 exp(-distance / length), less across passes
///    and kinds.
class Calibration {
 public:
  Calibration() = default;
  Calibration(std::vector<CalibrationPoint> points, std::span<const double> log_ratios);
  /// 0 without measurements.
  double log_ratio(const CalibrationPoint& point) const;

 private:
  std::vector<CalibrationPoint> points_;
  std::vector<double> shared_weights_, near_weights_;
};

/// `count` points of which measurements leave the least uncertainty, by the covariances above:
/// greedily the one that lowers the sum of variances most, the first of equals. Products and
/// convolutions get half each where there are both. From shapes alone, so no time is looked at.
/// Indices, sorted. Of more than kMaxCandidates points of an op an even selection takes part.
std::vector<std::size_t> choose_calibration(std::span<const CalibrationPoint> points,
                                            std::size_t count);
inline constexpr std::size_t kMaxCandidates = 1000;

}  // namespace turnout::gpu_model
