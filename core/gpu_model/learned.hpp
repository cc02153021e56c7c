#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/device.hpp"
#include "core/gpu_model/parameters.hpp"
#include "core/gpu_model/shape.hpp"

namespace turnout::gpu_model {

/// A device that published tables of measured times exist of.
struct PublishedDevice {
  std::string_view name;  ///< of its profile: "v100"
  std::string_view vendor, generation;
  int compute_units = 0;
};
std::span<const PublishedDevice> published_devices();

/// Index into published_devices() of the one that `device` is (same vendor, generation and number
/// of units, whatever its name), or -1.
int published_index(const DeviceInfo& device);
/// The same by name; -1 if there is none.
int published_index(std::string_view name);

/// What was learned from the tables of all published devices but `without` (-1: from all).
struct Learned {
  GemmParameters gemm;
  ConvParameters conv;
};
Learned learned_parameters(int without);

/// Error of the convolution model at a shape on a published device: log(time / model's time), less
/// the median of its pass for f32, with the parameters learned without device `without`.
struct PublishedError {
  OpShape shape;
  double log_ratio = 0;
};
std::vector<PublishedError> published_errors(int device, int without, bool half);

}  // namespace turnout::gpu_model
