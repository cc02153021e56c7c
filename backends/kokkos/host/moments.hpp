#pragma once

#include "backends/kokkos/host/row_math.hpp"

namespace turnout::kokkos {

template <typename W>
struct Moments {
  W mean, factor;
};

/// Mean and 1 / sqrt(variance + epsilon) of a row, by two passes. Without `centered` the mean
/// counts as 0.
template <typename T>
TURNOUT_HD Moments<Wide<T>> moments_of(const T* x, std::int64_t length, double epsilon,
                                       bool centered) {
  using W = Wide<T>;
  const auto count = static_cast<double>(length);
  const double sum =
      centered ? sum_of<W>(length, [&](std::int64_t i) { return static_cast<W>(x[i]); }) : 0;
  const W mean = static_cast<W>(sum / count);
  const double squares = sum_of<W>(length, [&](std::int64_t i) {
    const W difference = static_cast<W>(x[i]) - mean;
    return difference * difference;
  });
  return {mean, static_cast<W>(1 / std::sqrt(squares / count + epsilon))};
}

}  // namespace turnout::kokkos
