#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/kokkos/fast_unary.hpp"
#include "core/dtype.hpp"
#include "core/portable.hpp"

// Sums and maxima over rows, written so that the compiler makes vector code of them.
namespace turnout::kokkos {

/// Type in which elements of T are worked with: float for the 16-bit types.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline constexpr int kLanes = 16;

/// Sum of map(i) for i in [0, n): in kLanes interleaved partial sums over blocks short enough to
/// lose little, the blocks' sums in double.
template <typename W, typename Map>
TURNOUT_HD double sum_of(std::int64_t n, const Map& map) {
  constexpr std::int64_t kBlock = 1024;
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = begin + kBlock < n ? begin + kBlock : n;
    W lanes[kLanes] = {};
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
#pragma GCC unroll 1  // one vector operation, rather than kLanes scalar ones
      for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += map(i + lane);
    }
    for (int lane = 0; i < end; ++i, ++lane) lanes[lane] += map(i);
    for (const W lane : lanes) total += static_cast<double>(lane);
  }
  return total;
}

/// Largest map(i); NaN is passed over. -infinity when n is 0.
template <typename W, typename Map>
TURNOUT_HD W max_of(std::int64_t n, const Map& map) {
  W lanes[kLanes];
  for (W& lane : lanes) lane = -std::numeric_limits<W>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; ++lane) {
      const W x = map(i + lane), old = lanes[lane];
      lanes[lane] = x > old ? x : old;
    }
  }
  W largest = lanes[0];
  for (const W lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < n; ++i) {
    const W x = map(i);
    largest = x > largest ? x : largest;
  }
  return largest;
}

}  // namespace turnout::kokkos
