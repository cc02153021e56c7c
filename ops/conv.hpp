#pragma once

#include <cstdint>

#include "ops/window.hpp"

namespace turnout {

/// A convolution node x[N,C,spatial...] * w[M,C/groups,kernel...] in numbers. For conv_transpose
/// w is [C,M/groups,kernel...], and the window runs over the output (see transposed_window).
struct ConvDims {
  std::int64_t batch = 0;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0, out_channels = 0;  ///< of all groups
  Window window;

  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  /// One input channel a group.
  bool depthwise() const { return groups > 1 && group_in() == 1; }
};

/// Check the operands' shapes too; errors name the node.
ConvDims conv_dims(const NodeInfo& info);
ConvDims conv_transpose_dims(const NodeInfo& info);

}  // namespace turnout
