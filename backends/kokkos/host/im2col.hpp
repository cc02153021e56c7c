#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "backends/kokkos/host/gemm_tile.hpp"
#include "ops/window.hpp"

// The right operand of a convolution as a product: b[(channel, tap), output position] is the input
// that this tap sees at this position, 0 in the padding. It is made panel by panel while the
// product runs and never exists as a whole.
//
// Positions of a panel are taken in runs that lie in one row of the output. For every tap a run is
// a piece of one row of the input, the same for all channels, so where it lies and how much of it
// is padding is found once.
namespace turnout::kokkos {

template <typename A, typename T>
struct Im2col {
  const T* x = nullptr;  ///< channels of one group of one image
  const Window* window = nullptr;
  std::int64_t plane = 0;  ///< window->in_size()
  std::int64_t taps = 0;   ///< window->kernel_size()

  static void pack(const void* source, std::int64_t k0, std::int64_t k1, std::int64_t n0,
                   std::int64_t n1, A* to) {
    const auto& self = *static_cast<const Im2col*>(source);
    constexpr std::int64_t kCols = Tile<A>::kCols;
    for (std::int64_t first = n0; first < n1; first += kCols, to += (k1 - k0) * kCols) {
      const std::int64_t last = std::min(first + kCols, n1);
      if (last - first < kCols) std::fill(to, to + (k1 - k0) * kCols, A(0));
      const std::int64_t width = self.window->axis(self.window->rank - 1).out;
      for (std::int64_t at = first; at < last;) {
        const std::int64_t column = at % width;
        const std::int64_t length = std::min(width - column, last - at);
        self.pack_run(at / width, column, length, k0, k1, to + (at - first));
        at += length;
      }
    }
  }

 private:
  /// `length` positions from `column` on of row `row` of the output (all but the last axis).
  void pack_run(std::int64_t row, std::int64_t column, std::int64_t length, std::int64_t k0,
                std::int64_t k1, A* to) const {
    const int outer = window->rank - 1;
    std::array<std::int64_t, Window::kMaxRank> start{};
    for (int i = outer - 1; i >= 0; --i) {
      start[static_cast<std::size_t>(i)] = window->axis(i).start(row % window->axis(i).out);
      row /= window->axis(i).out;
    }
    const Window::Axis& last = window->axis(outer);
    for (std::int64_t outer_tap = 0; outer_tap < taps / last.kernel; ++outer_tap) {
      const std::int64_t line = input_line(outer_tap, start);
      for (std::int64_t t = 0; t < last.kernel; ++t) {
        const std::int64_t tap = outer_tap * last.kernel + t;
        // Input column of the run's position i: from + i * stride.
        const std::int64_t from = last.start(column) + t * last.dilation;
        const std::int64_t low = from >= 0 ? 0 : (-from + last.stride - 1) / last.stride;
        const std::int64_t high =
            last.in > from ? (last.in - from - 1) / last.stride + 1 : std::int64_t{0};
        const bool inside = line >= 0;
        const std::int64_t begin = inside ? std::min(low, length) : length;
        const std::int64_t end = inside ? std::max(std::min(high, length), begin) : length;
        copy_channels(tap, inside ? line * last.in + from : 0, last.stride, begin, end, length, k0,
                      k1, to);
      }
    }
  }

  /// Row of the input's plane that an outer tap sees, or -1 in the padding.
  std::int64_t input_line(std::int64_t tap,
                          const std::array<std::int64_t, Window::kMaxRank>& start) const {
    std::int64_t line = 0, step = 1;
    for (int i = window->rank - 2; i >= 0; --i) {
      const Window::Axis& axis = window->axis(i);
      const std::int64_t at =
          start[static_cast<std::size_t>(i)] + tap % axis.kernel * axis.dilation;
      if (at < 0 || at >= axis.in) return -1;
      line += at * step;
      step *= axis.in;
      tap /= axis.kernel;
    }
    return line;
  }

  /// One tap of one run for all channels whose k lies in [k0, k1): zeros, [begin, end), zeros.
  void copy_channels(std::int64_t tap, std::int64_t offset, std::int64_t stride, std::int64_t begin,
                     std::int64_t end, std::int64_t length, std::int64_t k0, std::int64_t k1,
                     A* to) const {
    const std::int64_t first = k0 <= tap ? 0 : (k0 - tap + taps - 1) / taps;
    const T* from = x + first * plane + offset;
    A* row = to + (first * taps + tap - k0) * Tile<A>::kCols;
    for (std::int64_t k = first * taps + tap; k < k1; k += taps) {
      for (std::int64_t i = 0; i < begin; ++i) row[i] = A(0);
      if (stride == 1) {
        for (std::int64_t i = begin; i < end; ++i) row[i] = static_cast<A>(from[i]);
      } else {
        for (std::int64_t i = begin; i < end; ++i) row[i] = static_cast<A>(from[i * stride]);
      }
      for (std::int64_t i = end; i < length; ++i) row[i] = A(0);
      from += plane;
      row += taps * Tile<A>::kCols;
    }
  }
};

}  // namespace turnout::kokkos
