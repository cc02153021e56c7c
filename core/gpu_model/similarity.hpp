#pragma once

#include <array>

#include "core/gpu_model/shape.hpp"

namespace turnout::gpu_model {

/// What decides how alike the model's errors at two shapes are. `kind`: transposes of products; of
/// convolutions few channels, 1x1, 1x1 with strides, 3x3, other. `sizes`: logarithms (base 2),
/// weighted, so that their Euclidean distance says how far apart two shapes are:
///   product      m and n up to 256 (beyond, more tiles are just more of the same), k, flops
///   convolution  batch, channels of a group in and out, output pixels, taps, groups
struct Features {
  bool is_conv = false;
  Pass pass = Pass::forward;
  int kind = 0;
  std::array<double, 6> sizes{};
};

Features features_of(const OpShape& shape);
double distance(const Features& a, const Features& b);

}  // namespace turnout::gpu_model
