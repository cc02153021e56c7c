#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/dtype.hpp"
#include "core/portable.hpp"

// Sums, maxima and exponentials over rows, written so that the compiler makes vector code of them.
namespace turnout::kokkos {

/// Type in which elements of T are worked with: float for the 16-bit types.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// exp(x) within 2 units in the last place, without branches; subnormal results included.
/// Splits x = n ln 2 + r with |r| <= ln 2 / 2; the polynomial is the Taylor series of exp to r^7,
/// whose rest is below 2^-27. 2^n is applied in two halves, as it may be out of range alone.
TURNOUT_HD inline float fast_exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  x = x < -104.0F ? -104.0F : (x > 89.0F ? 89.0F : x);  // keeps NaN
  const float shifted = x * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693145752F) - n * 1.42860677e-6F;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto power = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  const std::int32_t half = power >> 1;
  const auto scale = [](std::int32_t e) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23);
  };
  return p * scale(half) * scale(power - half);
}
TURNOUT_HD inline double fast_exp(double x) { return std::exp(x); }

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
