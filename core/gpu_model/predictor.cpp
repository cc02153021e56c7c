#include "core/gpu_model/predictor.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/gpu_model/conv.hpp"
#include "core/gpu_model/product.hpp"

namespace turnout::gpu_model {
namespace {

// Reading a column-major A transposed steps from row to row by k elements. Where that step is a
// multiple of a power of two of bytes, rows fall onto few memory channels; how much that costs
// differs between devices and is 0 unless a calibration finds it. 0 to 1 (4 KiB and more).
double channel_conflict(const OpShape& shape) {
  if (!shape.transpose_a) return 0;
  constexpr int kFree = 8, kWorst = 12;  // 256 bytes a channel, 16 channels
  std::int64_t bytes = shape.k * (shape.half ? 2 : 4);
  int power = 0;
  while (power < kWorst && bytes % 2 == 0) {
    bytes /= 2;
    ++power;
  }
  return std::max(0, power - kFree) / double(kWorst - kFree);
}

std::string published_names(int without = -1) {
  std::string names;
  const auto devices = published_devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (static_cast<int>(i) == without) continue;
    if (!names.empty()) names += ", ";
    names += devices[i].name;
  }
  return names;
}

}  // namespace

std::size_t CarriedErrors::bucket(const Features& features) {
  return static_cast<std::size_t>(features.pass) * kKinds + static_cast<std::size_t>(features.kind);
}

void CarriedErrors::add(std::span<const PublishedError> errors) {
  for (const PublishedError& error : errors) {
    const Features features = features_of(error.shape);
    rows_[bucket(features)].push_back({features, error.log_ratio});
  }
}

double CarriedErrors::log_ratio(const Features& features) const {
  constexpr double kLength = 1.5, kPseudoCount = 0.4;
  double sum = 0, weights = kPseudoCount;
  for (const Row& row : rows_[bucket(features)]) {
    const double weight = std::exp(-2 * distance(row.features, features) / kLength);
    sum += weight * row.log_ratio;
    weights += weight;
  }
  return sum / weights;
}

GpuPredictor::GpuPredictor(const DeviceInfo& device, std::string_view leave_out)
    : spec_(gpu_spec(device)), without_(published_index(device)) {
  if (!leave_out.empty()) {
    const int named = published_index(leave_out);
    if (named < 0) {
      fail(ErrorCode::invalid_argument, "no published tables of '{}' to leave out; there are {}",
           leave_out, published_names());
    }
    if (without_ >= 0 && without_ != named) {
      fail(ErrorCode::invalid_argument,
           "'{}' already leaves out its own tables; '{}' can't be left out too", device.name,
           leave_out);
    }
    without_ = named;
  }
  learned_ = learned_parameters(without_);
  const auto devices = published_devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].vendor != device.vendor) continue;
    for (const bool half : {false, true}) {
      carried_[half ? 1 : 0].add(published_errors(static_cast<int>(i), without_, half));
    }
  }
}

double GpuPredictor::model_seconds(const OpShape& shape, const Learned& learned) const {
  return shape.is_conv ? conv_seconds(spec_, shape, learned.conv).seconds
                       : gemm_seconds(spec_, shape, learned.gemm);
}

double GpuPredictor::uncalibrated_seconds(const OpShape& shape) const {
  const double seconds = model_seconds(shape, learned_);
  if (!shape.is_conv) return seconds;
  const bool matrix = shape.half && spec_.half_flops_per_s > 0;
  return seconds * std::exp(carried_[matrix ? 1 : 0].log_ratio(features_of(shape)));
}

double GpuPredictor::seconds(const OpShape& shape) const {
  const double seconds = uncalibrated_seconds(shape);
  if (!calibrated_) return seconds;
  // Far from all measurements the linear part would go on without end.
  constexpr double kMostCorrection = 2;
  const double correction = calibration_.log_ratio(point(shape));
  return seconds * std::exp(std::clamp(correction, -kMostCorrection, kMostCorrection));
}

CalibrationPoint GpuPredictor::point(const OpShape& shape) const {
  constexpr double kFactor = 1.25, kConflictWeight = 2;
  CalibrationPoint point{features_of(shape), {}};
  const double base = model_seconds(shape, learned_);
  Learned changed = learned_;
  for (double* parameter : shape.is_conv ? fitted(changed.conv) : fitted(changed.gemm)) {
    const double learned = *parameter;
    *parameter *= kFactor;
    point.sensitivities.push_back(std::log(model_seconds(shape, changed) / base) /
                                  std::log(kFactor));
    *parameter = learned;
  }
  if (!shape.is_conv) point.sensitivities.push_back(kConflictWeight * channel_conflict(shape));
  return point;
}

std::vector<std::size_t> GpuPredictor::choose(std::span<const OpShape> shapes,
                                              std::size_t count) const {
  std::vector<CalibrationPoint> points;
  points.reserve(shapes.size());
  for (const OpShape& shape : shapes) points.push_back(point(shape));
  return choose_calibration(points, count);
}

void GpuPredictor::calibrate(std::span<const OpShape> shapes, std::span<const double> seconds) {
  std::vector<CalibrationPoint> points;
  std::vector<double> log_ratios;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    points.push_back(point(shapes[i]));
    log_ratios.push_back(std::log(seconds[i] / uncalibrated_seconds(shapes[i])));
  }
  calibration_ = Calibration(std::move(points), log_ratios);
  calibrated_ = !shapes.empty();
}

std::string GpuPredictor::learned_from() const { return published_names(without_); }

double memory_bound_seconds(const GpuSpec& spec, double flops, double bytes) {
  constexpr double kVectorShare = 0.5;
  const double memory = bytes / (spec.bandwidth_bytes_per_s * ProductParameters{}.stream);
  return GemmParameters{}.launch_seconds +
         std::max(flops / (spec.f32_flops_per_s * kVectorShare), memory);
}

}  // namespace turnout::gpu_model
