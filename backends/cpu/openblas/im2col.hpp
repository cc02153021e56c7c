#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/openblas/partition.hpp"
#include "ops/window.hpp"

namespace turnout::openblas {

/// Unfolds output positions `block` of one group of one image into a matrix: row (c, tap), column
/// position - block.begin, zero where the window hangs over the edge. `x` is [channels, in...],
/// `columns` is [channels * taps, block.size()].
///
/// Example: 3 taps of dilation 1 over x = 1 2 3 4 without padding, block [0, 2):
///   1 2
///   2 3
///   3 4
template <typename T>
void im2col(const T* x, std::int64_t channels, const Window& window, const Part& block, T* columns);

}  // namespace turnout::openblas
