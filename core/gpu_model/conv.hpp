#pragma once

#include <string_view>

#include "core/gpu_model/parameters.hpp"
#include "core/gpu_model/shape.hpp"
#include "core/gpu_model/spec.hpp"

namespace turnout::gpu_model {

struct ConvEstimate {
  double seconds = 0;
  std::string_view algorithm;  ///< of the least time: "implicit", "columns", "winograd 2x2", ...
};

/// Seconds of one pass of a convolution: launch + the least of the algorithms that the vendor's
/// library has for it. b batch, c and o channels, HW input and PQ output pixels, RS filter taps:
///
///   implicit   one product (product.hpp)   m    n       k                operands read once
///     forward                              o    b PQ    c RS
///     data gradient                        c    b HW    o RS PQ / HW     (taps that hit a pixel)
///     filter gradient                      o    c RS    b PQ             (long k: split)
///   columns    data gradient: product c RS x b PQ x o, then the columns are added up in memory
///   winograd   3x3 or 5x5, stride 1: (q+r-1)^2 products over tiles of q x q outputs,
///              (q r / (q+r-1))^2 fewer multiplications. 2x2 fused: operands read once. Larger
///              tiles: the transforms go through memory and are kernels of their own.
///
/// Matrix units take part where both channel counts are multiples of 8. Grouped convolutions are
/// the sum of their groups' work in one launch.
ConvEstimate conv_seconds(const GpuSpec& spec, const OpShape& shape, const ConvParameters& params);

}  // namespace turnout::gpu_model
