#pragma once

#include <optional>

#include "core/device.hpp"
#include "core/gpu_model/predictor.hpp"
#include "core/op.hpp"

namespace turnout {

/// Times of kernels on one device that is known by its figures: what the planner and the clock of
/// virtual devices use. Products and convolutions in f32, f16 and bf16 take the models of
/// core/gpu_model/, whose errors docs/predict.md records; they need the sheet's clock, f32 rate and
/// bandwidth. Everything else, devices without those figures and devices whose rates were measured
/// take roofline_seconds(). Never less than the device's launch.
///
/// Const methods are pure and thread-safe, and allocate nothing.
class DeviceTimes {
 public:
  explicit DeviceTimes(const DeviceInfo& info);

  /// Seconds of one kernel; `dtype` of its main operands.
  double kernel_seconds(const Cost& cost, DType dtype) const;
  /// Of that time: unprobed, predicted or calibrated.
  Evidence evidence(DType dtype) const;

 private:
  bool is_modelled(const Cost& cost, DType dtype) const;

  DeviceInfo info_;
  std::optional<gpu_model::GpuPredictor> predictor_;
};

}  // namespace turnout
