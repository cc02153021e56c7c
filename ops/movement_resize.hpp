#pragma once

#include <cstdint>
#include <vector>

#include "core/op.hpp"

namespace turnout {

/// How one axis is resized. Output position o is the sum over t < taps of
/// weight[o * taps + t] * x[index[o * taps + t]]; indices lie inside the input.
struct ResizeAxis {
  int axis = 0;
  std::int64_t in = 0, out = 0;
  std::int64_t taps = 1;
  std::vector<std::int64_t> index;
  std::vector<double> weight;  ///< nearest: one tap of weight 1
  /// Not empty: 1 where the output position takes the extrapolation value.
  std::vector<std::uint8_t> outside;
};

/// The axes of a resize node that change, in order. Axes are independent: apply them one after the
/// other, or multiply their weights. An output element that is outside on any axis is
/// the attribute extrapolation_value. None when the output has no elements.
std::vector<ResizeAxis> resize_axes(const NodeInfo& info);

/// True if every output element is one input element (mode nearest, no extrapolation).
bool resize_only_moves(const NodeInfo& info);

}  // namespace turnout
