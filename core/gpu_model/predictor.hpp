#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/gpu_model/calibration.hpp"
#include "core/gpu_model/learned.hpp"
#include "core/gpu_model/shape.hpp"
#include "core/gpu_model/spec.hpp"

namespace turnout::gpu_model {

/// Error of the model at shapes, carried over from measured devices: the mean of their errors,
/// weighted by exp(-2 distance / length) among shapes of the same pass and kind, and drawn to 0
/// where nothing similar was measured.
class CarriedErrors {
 public:
  void add(std::span<const PublishedError> errors);
  double log_ratio(const Features& features) const;

 private:
  struct Row {
    Features features;
    double log_ratio;
  };
  static std::size_t bucket(const Features& features);
  static constexpr std::size_t kPasses = 3, kKinds = 5;
  std::array<std::vector<Row>, kPasses * kKinds> rows_;  // by pass and kind
};

/// Times of products and convolutions on one GPU that is known by its sheet. seconds() is const and
/// thread-safe.
///
/// A device that published tables exist of never learns from its own: its tables are left out, so
/// that the prediction is as honest as for any other device. Errors of convolutions are carried
/// over from published devices with the same vendor's library.
class GpuPredictor {
 public:
  /// `leave_out`: a published device whose tables are left out as well as (instead of) the device's
  /// own; empty: none. Errors: invalid_argument where the sheet lacks a figure, where `leave_out`
  /// isn't a published device, or names another one than the device is.
  explicit GpuPredictor(const DeviceInfo& device, std::string_view leave_out = {});

  double seconds(const OpShape& shape) const;

  /// Which shapes to measure, see choose_calibration().
  std::vector<std::size_t> choose(std::span<const OpShape> shapes, std::size_t count) const;
  /// Corrects all later times by what was measured on the device.
  void calibrate(std::span<const OpShape> shapes, std::span<const double> seconds);

  /// Names of the published devices whose tables took part, "v100, p100".
  std::string learned_from() const;
  const GpuSpec& spec() const { return spec_; }

 private:
  double model_seconds(const OpShape& shape, const Learned& learned) const;
  double uncalibrated_seconds(const OpShape& shape) const;
  CalibrationPoint point(const OpShape& shape) const;

  GpuSpec spec_;
  int without_ = -1;
  Learned learned_;
  CarriedErrors carried_[2];  // f32, half
  bool calibrated_ = false;
  Calibration calibration_;
};

/// Seconds of an op that does no product: launch + max(flops / (half the f32 rate),
/// bytes / (stream bandwidth)); bytes are each operand's, once.
double memory_bound_seconds(const GpuSpec& spec, double flops, double bytes);

}  // namespace turnout::gpu_model
